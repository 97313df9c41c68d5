//! The transport over in-memory streams, pipes and sockets.

use tokio::io::AsyncWriteExt as _;

use super::*;

fn notification(text: &str) -> TransportFrame {
    TransportFrame::parse_json(&format!(
        r#"{{"jsonrpc":"2.0","method":"m","params":{{"t":"{text}"}}}}"#
    ))
}

type Ends = (tokio::io::DuplexStream, tokio::io::DuplexStream);

/// A transport over two in-memory streams: its channel, its driver, and the client's ends.
fn transport(size: usize, max_line: usize, outflow: &Outflow) -> (Channel, ConnectionDriver, Ends) {
    let (to_agent, reader) = tokio::io::duplex(size);
    let (writer, from_agent) = tokio::io::duplex(size);
    let stdio = Stdio { max_line, ..Stdio::over(reader, writer, outflow.clone()) };
    let (channel, driver) = stdio.into_channel();
    (channel, driver, (to_agent, from_agent))
}

#[tokio::test]
async fn lines_become_frames_and_the_end_of_input_closes_the_channel() {
    let (channel, driver, (mut input, _output)) = transport(1 << 16, 100, &Outflow::new());
    let driver = tokio::spawn(driver);
    let long = "x".repeat(200);
    let text = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"a\"}}\r\n\n{long}\nnot json\n{{\"jsonrpc\":\"2.0\",\"method\":\"last\"}}"
    );
    input.write_all(text.as_bytes()).await.unwrap();
    drop(input);
    let (rx, tx) = channel.into_parts();
    let frames: Vec<TransportFrame> = rx.collect().await;
    let TransportFrame::Single(RawJsonRpcMessage::Request(request)) = &frames[0] else {
        panic!("{:?}", frames[0])
    };
    assert_eq!(serde_json::to_string(&request.id).unwrap(), "9007199254740993");
    let TransportFrame::Malformed { error, .. } = &frames[1] else { panic!("{:?}", frames[1]) };
    assert!(error.data.as_ref().unwrap().as_str().unwrap().contains("longer"));
    assert!(matches!(&frames[2], TransportFrame::Malformed { raw, .. } if raw == "not json"));
    assert!(matches!(&frames[3], TransportFrame::Single(RawJsonRpcMessage::Notification(_))));
    assert_eq!(frames.len(), 4);
    drop(tx);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn half_a_character_in_a_request_leaves_it_its_id() {
    let (channel, driver, (mut input, _output)) = transport(1 << 16, 1000, &Outflow::new());
    let driver = tokio::spawn(driver);
    let text = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"delta\":\"a\\ud83d\",\"t\":\"\\udc00b \\ud83d\\ude00 \\\\ud83d\"}}\n";
    input.write_all(text.as_bytes()).await.unwrap();
    drop(input);
    let (mut rx, tx) = channel.into_parts();
    let frame = rx.next().await.unwrap();
    let TransportFrame::Single(RawJsonRpcMessage::Request(request)) = &frame else {
        panic!("{frame:?}")
    };
    assert_eq!(serde_json::to_value(&request.id).unwrap(), 7);
    let params = serde_json::to_value(&request.params).unwrap();
    assert_eq!(params["delta"], "a\u{fffd}");
    assert_eq!(params["t"], "\u{fffd}b \u{1f600} \\ud83d");
    drop((rx, tx));
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_follows_initialize_is_read_when_its_answer_leaves() {
    let (channel, driver, (mut input, _output)) = transport(1 << 16, 1000, &Outflow::new());
    let driver = tokio::spawn(driver);
    let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\"}\n";
    input.write_all(text.as_bytes()).await.unwrap();
    drop(input);
    let (mut rx, tx) = channel.into_parts();
    assert!(matches!(rx.next().await, Some(frame) if is_initialize(&frame)));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(rx.next().now_or_never().is_none());
    let answer = TransportFrame::parse_json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    tx.unbounded_send(answer).unwrap();
    assert!(matches!(rx.next().await, Some(TransportFrame::Single(_))));
    drop(tx);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn output_after_the_end_of_input_is_still_written() {
    let (channel, driver, (input, mut output)) = transport(1 << 16, 100, &Outflow::new());
    let driver = tokio::spawn(driver);
    drop(input);
    let (mut rx, tx) = channel.into_parts();
    assert!(rx.next().await.is_none());
    tx.unbounded_send(notification("late")).unwrap();
    drop(tx);
    driver.await.unwrap().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("late") && text.ends_with('\n'), "{text}");
}

#[tokio::test]
async fn a_client_that_is_gone_is_a_quiet_end() {
    let outflow = Outflow::new();
    let (channel, driver, (_input, output)) = transport(64, 100, &outflow);
    drop(output);
    let driver = tokio::spawn(driver);
    let (mut rx, tx) = channel.into_parts();
    tx.unbounded_send(notification("x")).unwrap();
    assert!(rx.next().await.is_none(), "the agent is told by the end of its input");
    tx.unbounded_send(notification("what the agent says until it has ended is no failure"))
        .unwrap();
    drop(tx);
    driver.await.unwrap().unwrap();
    assert_eq!(outflow.0.bytes.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn the_gauge_rises_while_the_client_does_not_read_and_falls_when_it_does() {
    let outflow = Outflow::new();
    let (channel, driver, (_input, mut output)) = transport(1024, 100, &outflow);
    let driver = tokio::spawn(driver);
    outflow.ready().await;
    let piece = "y".repeat(10_000);
    for _ in 0..200 {
        channel.tx.unbounded_send(notification(&piece)).unwrap();
    }
    while !outflow.is_pressed() {
        tokio::task::yield_now().await;
    }
    let waiting = tokio::spawn({
        let outflow = outflow.clone();
        async move { outflow.ready().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(channel.tx);
    let mut text = String::new();
    let (read, driven) = tokio::join!(output.read_to_string(&mut text), driver);
    read.unwrap();
    driven.unwrap().unwrap();
    waiting.await.unwrap();
    assert_eq!(text.lines().count(), 200);
    assert_eq!(outflow.0.bytes.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_pipe_is_driven_without_blocking_and_given_back_as_it_was() {
    let (reader, writer) = io::pipe().unwrap();
    let blocking = |fd: BorrowedFd<'_>| {
        !rustix::fs::fcntl_getfl(fd).unwrap().contains(rustix::fs::OFlags::NONBLOCK)
    };
    let (mut input, mut output) =
        (Input::of(reader.as_fd()).unwrap(), Output::of(writer.as_fd()).unwrap());
    assert!(!blocking(reader.as_fd()) && !blocking(writer.as_fd()));
    output.write_all(b"x").await.unwrap();
    assert_eq!(input.read_u8().await.unwrap(), b'x');
    drop((input, output));
    assert!(blocking(reader.as_fd()) && blocking(writer.as_fd()));
}

#[tokio::test]
async fn a_socket_is_driven_too_and_a_file_is_left_alone() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut output = Output::of(ours.as_fd()).unwrap();
    let mut input = Input::of(theirs.as_fd()).unwrap();
    output.write_all(b"x").await.unwrap();
    assert_eq!(input.read_u8().await.unwrap(), b'x');
    let file = tempfile::tempfile().unwrap();
    assert!(Input::of(file.as_fd()).is_err());
    assert!(!rustix::fs::fcntl_getfl(&file).unwrap().contains(rustix::fs::OFlags::NONBLOCK));
}

#[tokio::test]
async fn in_process_only_notifications_are_counted_until_they_are_taken() {
    use agent_client_protocol::UntypedRole;
    let outflow = Outflow::new();
    let (agent, agent_end) = Channel::duplex();
    let (client, client_end) = Channel::duplex();
    let metered = Metered::new(agent_end, outflow.clone());
    let work = tokio::spawn(ConnectTo::<UntypedRole>::connect_to(metered, client_end));
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update"}"#,
    ] {
        agent.tx.unbounded_send(TransportFrame::parse_json(line)).unwrap();
    }
    client.tx.unbounded_send(notification("back")).unwrap();
    let (mut client_rx, client_tx) = client.into_parts();
    let (mut agent_rx, agent_tx) = agent.into_parts();
    for _ in 0..2 {
        client_rx.next().await.unwrap();
    }
    agent_rx.next().await.unwrap();
    assert_eq!(outflow.0.bytes.load(Ordering::Relaxed), FRAME_COST);
    outflow.taken(1);
    assert_eq!(outflow.0.bytes.load(Ordering::Relaxed), 0);
    drop((client_tx, agent_tx));
    work.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_in_process_client_presses_until_it_has_taken_its_messages() {
    let outflow = Outflow::new();
    outflow.add(PRESSURE + FRAME_COST);
    assert!(outflow.is_pressed());
    let waiting = tokio::spawn({
        let outflow = outflow.clone();
        async move { outflow.ready().await }
    });
    tokio::task::yield_now().await;
    outflow.taken(1);
    waiting.await.unwrap();
    outflow.taken(usize::MAX / FRAME_COST);
    assert!(!outflow.is_pressed());
}
