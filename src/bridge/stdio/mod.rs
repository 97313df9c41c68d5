//! The transport of `serve`: JSON lines over standard input and output, and the gauge by which
//! sessions notice a client that reads slower than the engine writes. Knows frames, not methods.
//! Called by `serve`; [`Outflow`] by the session actors and whoever wires the in-process client.
//!
//! # Back-pressure
//!
//! The SDK's queues are unbounded: a client that stops reading would let them grow for ever. So
//! the transport takes every frame at once, turns it into bytes, and counts in an [`Outflow`] what
//! is not written yet. A session actor awaits [`Outflow::ready`] before it takes the next engine
//! event (never while it holds a cancel or an answer back); its mailbox fills, the engine's reader
//! stops, the engine's pipe fills. Without pressure `ready` is one load of an atomic.
//!
//! # A client that does not wait for `initialize`
//!
//! The SDK refuses every request that comes before the answer to `initialize` has left. A client
//! that writes `initialize` and its first requests in one go is right all the same: what comes
//! behind `initialize` is read when its answer is on its way.
//!
//! In process nothing is written: there [`Metered`] sits between agent and client, counts every
//! notification that goes to the client, and the client tells with [`Outflow::taken`] how many of
//! them it has handled (replies and requests are few, and the SDK hands them out by itself).

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use agent_client_protocol::{
    Channel, ConnectTo, ConnectionDriver, Error, RawJsonRpcMessage, RawJsonRpcResponse, Role,
    TransportFrame,
};
use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use futures::future::{BoxFuture, Either, FutureExt as _, select};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::Notify;

use super::engine::halves;
use super::engine::lines::{self, Line, LineBuffer};
use crate::join::{Way, join};
use crate::trace::{Direction, Trace, Wire};

mod unwritten;

use unwritten::Unwritten;

/// Longest line a client may send: a prompt with several large images fits.
const MAX_LINE: usize = 128 * 1024 * 1024;
/// Unwritten bytes above which sessions hold back: some pipes full, and as much memory.
const PRESSURE: usize = 256 * 1024;
/// What a frame counts for where nothing is written.
const FRAME_COST: usize = 256;
/// How much of a line that is no message is repeated in the answer.
const QUOTE: usize = 200;

/// How much output has been accepted and not yet taken by the client. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Outflow(Arc<Gauge>);

#[derive(Debug, Default)]
struct Gauge {
    bytes: AtomicUsize,
    eased: Notify,
    answers: AtomicUsize,
    answer: Notify,
}

impl Outflow {
    /// A gauge at zero; one for each connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the client lags so far that sessions should hold back.
    pub fn is_pressed(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) > PRESSURE
    }

    /// Waits until the client has caught up; at once when it does not lag. Cancel safe.
    pub async fn ready(&self) {
        while self.is_pressed() {
            let eased = self.0.eased.notified();
            // Looked at again after the subscription, so that no wake-up falls between.
            if !self.is_pressed() {
                return;
            }
            eased.await;
        }
    }

    /// Waits until so many answers have left.
    pub async fn answered(&self, count: usize) {
        loop {
            let answer = self.0.answer.notified();
            if self.0.answers.load(Ordering::Relaxed) >= count {
                return;
            }
            answer.await;
        }
    }

    /// One answer leaves.
    fn answer(&self) {
        self.0.answers.fetch_add(1, Ordering::Relaxed);
        self.0.answer.notify_waiters();
    }

    /// An in-process client has handled this many notifications.
    pub fn taken(&self, frames: usize) {
        self.sub(frames * FRAME_COST);
    }

    fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn sub(&self, bytes: usize) {
        let less = |now: usize| Some(now.saturating_sub(bytes));
        let before = self
            .0
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .unwrap_or_default();
        if before > PRESSURE && before.saturating_sub(bytes) <= PRESSURE {
            self.0.eased.notify_waiters();
        }
    }
}

/// Standard input and output as an ACP transport.
#[derive(Debug)]
pub struct Stdio<R = Input, W = Output> {
    reader: R,
    writer: W,
    outflow: Outflow,
    max_line: usize,
    trace: Trace,
}

impl Stdio {
    /// Takes over this process's standard input and output. Needs a tokio runtime with I/O.
    ///
    /// When either is a terminal or a file, reading goes through a thread that cannot be
    /// interrupted: end the runtime with `shutdown_background`.
    pub fn new(outflow: Outflow) -> Self {
        Self::over(Input::stdin(), Output::stdout(), outflow)
    }
}

impl<R, W> Stdio<R, W> {
    /// Any pair of byte streams; for tests and sockets.
    pub fn over(reader: R, writer: W, outflow: Outflow) -> Self {
        Self { reader, writer, outflow, max_line: MAX_LINE, trace: Trace::off() }
    }

    /// Records every line.
    #[must_use]
    pub fn traced(self, trace: Trace) -> Self {
        Self { trace, ..self }
    }
}

impl<R, W> Stdio<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// The agent's channel, the work to be driven, and the way to ask it to finish.
    fn into_parts(self) -> (Channel, BoxFuture<'static, Result<(), Error>>, oneshot::Sender<()>) {
        let (ours, theirs) = Channel::duplex();
        let (rx, tx) = ours.into_parts();
        let (ask_finish, asked) = oneshot::channel::<()>();
        let finish = async move {
            if asked.await.is_err() {
                // Losing the hook is no request to finish.
                std::future::pending::<()>().await;
            }
        };
        let greeting = Greeting::default();
        let writer = Writer {
            greeting: greeting.clone(),
            out: self.writer,
            rx,
            unwritten: Unwritten::default(),
            outflow: self.outflow,
            open: true,
            trace: self.trace.clone(),
        };
        let input = Incoming { tx, max_line: self.max_line, trace: self.trace, greeting };
        let work = drive(self.reader, writer, input, finish.boxed());
        (theirs, work.boxed(), ask_finish)
    }

    fn into_channel(self) -> (Channel, ConnectionDriver) {
        let (channel, work, ask_finish) = self.into_parts();
        let driver = ConnectionDriver::with_finish(work, move || {
            ask_finish.send(()).ok();
        });
        (channel, driver)
    }
}

/// Runs both directions. Ends when the agent has finished and everything is written, when the
/// client no longer reads (quietly: it is gone), or on an error of the system.
async fn drive<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    reader: R,
    mut writer: Writer<W>,
    input: Incoming,
    mut finish: BoxFuture<'static, ()>,
) -> Result<(), Error> {
    let outcome = {
        let mut writing = pin!(async {
            poll_fn(|cx| {
                if writer.open && finish.poll_unpin(cx).is_ready() {
                    writer.open = false;
                    writer.rx.close();
                }
                writer.poll(cx)
            })
            .await
        });
        let reading = pin!(read(reader, input));
        match select(writing.as_mut(), reading).await {
            Either::Left((outcome, _reading)) => outcome,
            // The client sends nothing more; what it asked for is still answered.
            Either::Right((Ok(()), writing)) => writing.await,
            Either::Right((Err(error), _writing)) => Err(error),
        }
    };
    match outcome {
        Err(error) if is_gone(&error) => {
            tracing::debug!(%error, "the client closed its end");
            // Reading has ended, which ends the agent; until it has, nobody takes what it says.
            writer.discard(finish).await;
            Ok(())
        }
        outcome => outcome.map_err(Error::into_internal_error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::ConnectionAborted
    )
}

/// Where lines go.
struct Incoming {
    tx: mpsc::UnboundedSender<TransportFrame>,
    max_line: usize,
    trace: Trace,
    greeting: Greeting,
}

/// The `initialize` that is being answered, shared by both directions.
#[derive(Debug, Clone, Default)]
struct Greeting(Arc<GreetingState>);

#[derive(Debug, Default)]
struct GreetingState {
    waits: AtomicBool,
    answered: Notify,
}

impl Greeting {
    /// The client's message was handed on: returns when more may follow.
    async fn pass(&self) {
        while self.0.waits.load(Ordering::Acquire) {
            self.0.answered.notified().await;
        }
    }

    fn begin(&self) {
        self.0.waits.store(true, Ordering::Release);
    }

    /// A response leaves. Before `initialize` is answered there is no other.
    fn answer(&self) {
        if self.0.waits.swap(false, Ordering::AcqRel) {
            self.0.answered.notify_one();
        }
    }
}

fn is_initialize(frame: &TransportFrame) -> bool {
    matches!(frame, TransportFrame::Single(RawJsonRpcMessage::Request(request)) if &*request.method == "initialize")
}

/// Hands every line to the agent until the input ends.
async fn read<R: AsyncRead + Unpin>(mut reader: R, input: Incoming) -> io::Result<()> {
    let Incoming { tx, max_line, trace, greeting } = input;
    let mut lines = LineBuffer::default();
    loop {
        let ended = reader.read_buf(lines.space()).await? == 0;
        loop {
            let frame = match lines.next_line(max_line) {
                None => break,
                Some(Line::Bytes(line)) => frame(line, &trace),
                Some(Line::TooLong) => too_long(max_line),
            };
            let greets = is_initialize(&frame);
            if greets {
                greeting.begin();
            }
            if tx.unbounded_send(frame).is_err() {
                return Ok(());
            }
            if greets {
                greeting.pass().await;
            }
        }
        if ended {
            if let Some(rest) = lines.last_line() {
                tx.unbounded_send(frame(&rest, &trace)).ok();
            }
            return Ok(());
        }
    }
}

/// Reads one line. What is no message stays a frame of its own: the SDK answers it.
fn frame(line: &[u8], trace: &Trace) -> TransportFrame {
    let text = lines::text(line);
    trace.record(Wire::Acp, Direction::In, &text);
    let mut frame = TransportFrame::parse_json(&text);
    if matches!(frame, TransportFrame::Malformed { .. })
        && let Cow::Owned(healed) = halves::heal(&text)
    {
        // Half a character in a text is no reason to leave its request without an answer.
        frame = TransportFrame::parse_json(&healed);
    }
    match frame {
        // The SDK repeats the whole line in its answer; the beginning is enough to find it.
        TransportFrame::Malformed { raw, error } if raw.len() > QUOTE && error.data.is_some() => {
            let quote: String = raw.chars().take(QUOTE).collect();
            TransportFrame::Malformed {
                raw,
                error: error.data(serde_json::json!({ "line": quote })),
            }
        }
        frame => frame,
    }
}

fn too_long(limit: usize) -> TransportFrame {
    let text = format!("The line is longer than {} MiB and was skipped", limit >> 20);
    TransportFrame::Malformed { raw: String::new(), error: Error::invalid_request().data(text) }
}

/// Frames on their way out: all that are there become one write.
struct Writer<W> {
    out: W,
    rx: mpsc::UnboundedReceiver<TransportFrame>,
    unwritten: Unwritten,
    outflow: Outflow,
    open: bool,
    trace: Trace,
    greeting: Greeting,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Ready when the channel is closed and everything is written, or on an error.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let closed = self.collect(cx);
            let Some(part) = self.unwritten.front() else {
                // Buffered writers (files, terminals) pass on what they have.
                let flushed = Pin::new(&mut self.out).poll_flush(cx)?;
                return if closed && flushed.is_ready() {
                    Poll::Ready(Ok(()))
                } else {
                    Poll::Pending
                };
            };
            match Pin::new(&mut self.out).poll_write(cx, part) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.unwritten.taken(count);
                    self.outflow.sub(count);
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Drops what still comes, until the agent has finished: were the channel gone, the agent would
    /// take that for a failure of its own.
    async fn discard(&mut self, mut finish: BoxFuture<'static, ()>) {
        self.outflow.sub(self.unwritten.clear());
        poll_fn(|cx| {
            if self.open && finish.poll_unpin(cx).is_ready() {
                self.open = false;
                self.rx.close();
            }
            while let Poll::Ready(frame) = self.rx.poll_next_unpin(cx) {
                if frame.is_none() {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// Turns every frame that is there into bytes. True when there will be no more.
    fn collect(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            match self.rx.poll_next_unpin(cx) {
                Poll::Ready(Some(frame)) => {
                    if matches!(&frame, TransportFrame::Single(RawJsonRpcMessage::Response(_))) {
                        self.greeting.answer();
                        self.outflow.answer();
                    }
                    let buffer = self.unwritten.back();
                    let before = buffer.len();
                    append(buffer, &frame);
                    let line = buffer.get(before..).unwrap_or_default();
                    if self.trace.is_on() {
                        let line = String::from_utf8_lossy(line);
                        self.trace.record(Wire::Acp, Direction::Out, line.trim_end());
                    }
                    self.outflow.add(line.len());
                }
                Poll::Ready(None) => return true,
                Poll::Pending => return false,
            }
        }
    }
}

impl<W> Drop for Writer<W> {
    /// A client that is gone presses nobody.
    fn drop(&mut self) {
        self.outflow.sub(self.unwritten.clear());
    }
}

/// Appends a frame as one line. A message that has no JSON form is left out, a response among
/// them becomes an error, so that nobody waits for it.
fn append(buffer: &mut Vec<u8>, frame: &TransportFrame) {
    let start = buffer.len();
    let written = match frame {
        TransportFrame::Single(message) => serde_json::to_writer(&mut *buffer, message),
        TransportFrame::Malformed { raw, .. } => {
            // Ours never are; a relay's text must not become two lines.
            buffer.extend(raw.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
            Ok(())
        }
        _ => return,
    };
    if let Err(error) = written {
        tracing::error!(%error, "a message has no JSON form");
        buffer.truncate(start);
        let TransportFrame::Single(RawJsonRpcMessage::Response(response)) = frame else { return };
        let (RawJsonRpcResponse::Result { id, .. } | RawJsonRpcResponse::Error { id, .. }) =
            response;
        let instead = RawJsonRpcMessage::response(id.clone(), Err(Error::internal_error()));
        if serde_json::to_writer(&mut *buffer, &instead).is_err() {
            buffer.truncate(start);
            return;
        }
    }
    buffer.push(b'\n');
}

impl<C, R, W> ConnectTo<C> for Stdio<R, W>
where
    C: Role,
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    async fn connect_to(self, client: impl ConnectTo<C::Counterpart>) -> Result<(), Error> {
        let (channel, work, ask_finish) = self.into_parts();
        let connected = Box::pin(ConnectTo::<C>::connect_to(channel, client));
        match select(connected, work).await {
            Either::Left((outcome, work)) => {
                outcome?;
                ask_finish.send(()).ok();
                work.await
            }
            Either::Right((outcome, _connected)) => outcome,
        }
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        let (channel, driver) = self.into_channel();
        (channel, Some(driver))
    }
}

/// An agent whose notifications to its (in-process) client are counted.
#[derive(Debug)]
pub struct Metered<A> {
    agent: A,
    outflow: Outflow,
}

impl<A> Metered<A> {
    /// Counts what the agent sends; the client calls [`Outflow::taken`].
    pub fn new(agent: A, outflow: Outflow) -> Self {
        Self { agent, outflow }
    }
}

impl<C: Role, A: ConnectTo<C>> ConnectTo<C> for Metered<A> {
    async fn connect_to(self, client: impl ConnectTo<C::Counterpart>) -> Result<(), Error> {
        let outward = |frame: &TransportFrame, _: &Way| {
            if matches!(frame, TransportFrame::Single(RawJsonRpcMessage::Notification(_))) {
                self.outflow.add(FRAME_COST);
            }
            None::<std::future::Ready<()>>
        };
        join(self.agent, client, outward, |_| ()).await
    }
}

/// Standard input, by the cheapest way its kind allows.
#[derive(Debug)]
pub enum Input {
    /// A pipe.
    Pipe(pipe::Receiver, Mode),
    /// A socket (how Node gives pipes to its children).
    Socket(UnixStream, Mode),
    /// A file, a terminal or a device: read by a thread.
    Other(tokio::io::Stdin),
}

impl Input {
    fn stdin() -> Self {
        Self::of(io::stdin().as_fd()).unwrap_or_else(|_| Self::Other(tokio::io::stdin()))
    }

    fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let (kind, mode, fd) = (kind(fd), Mode::of(fd)?, fd.try_clone_to_owned()?);
        match kind {
            Kind::Pipe => Ok(Self::Pipe(pipe::Receiver::from_owned_fd(fd)?, mode)),
            Kind::Socket => Ok(Self::Socket(socket(fd)?, mode)),
            Kind::Other => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Standard output, by the cheapest way its kind allows.
#[derive(Debug)]
pub enum Output {
    /// A pipe.
    Pipe(pipe::Sender, Mode),
    /// A socket.
    Socket(UnixStream, Mode),
    /// A file, a terminal or a device: written by a thread.
    Other(tokio::io::Stdout),
}

impl Output {
    fn stdout() -> Self {
        Self::of(io::stdout().as_fd()).unwrap_or_else(|_| Self::Other(tokio::io::stdout()))
    }

    fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let (kind, mode, fd) = (kind(fd), Mode::of(fd)?, fd.try_clone_to_owned()?);
        match kind {
            Kind::Pipe => Ok(Self::Pipe(pipe::Sender::from_owned_fd(fd)?, mode)),
            Kind::Socket => Ok(Self::Socket(socket(fd)?, mode)),
            Kind::Other => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// The mode that a descriptor had before it was made non-blocking. Whoever shares it (the rest of
/// a shell script) finds it as it was.
#[derive(Debug)]
pub struct Mode {
    fd: OwnedFd,
    flags: rustix::fs::OFlags,
}

impl Mode {
    fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self { fd: fd.try_clone_to_owned()?, flags: rustix::fs::fcntl_getfl(fd)? })
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        rustix::fs::fcntl_setfl(&self.fd, self.flags).ok();
    }
}

enum Kind {
    Pipe,
    Socket,
    Other,
}

/// Only pipes and sockets are made non-blocking: a terminal or file is shared with others, who
/// would meet errors they do not expect.
fn kind(fd: BorrowedFd<'_>) -> Kind {
    use rustix::fs::FileType;
    match rustix::fs::fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Fifo) => Kind::Pipe,
        Ok(FileType::Socket) => Kind::Socket,
        _ => Kind::Other,
    }
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    // A network socket has no path-like address and fails here.
    stream.local_addr()?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(inner, _) => Pin::new(inner).poll_read(cx, buf),
            Self::Socket(inner, _) => Pin::new(inner).poll_read(cx, buf),
            Self::Other(inner) => Pin::new(inner).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(inner, _) => Pin::new(inner).poll_write(cx, buf),
            Self::Socket(inner, _) => Pin::new(inner).poll_write(cx, buf),
            Self::Other(inner) => Pin::new(inner).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(inner, _) => Pin::new(inner).poll_flush(cx),
            Self::Socket(inner, _) => Pin::new(inner).poll_flush(cx),
            Self::Other(inner) => Pin::new(inner).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(inner, _) => Pin::new(inner).poll_shutdown(cx),
            Self::Socket(inner, _) => Pin::new(inner).poll_shutdown(cx),
            Self::Other(inner) => Pin::new(inner).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests;
