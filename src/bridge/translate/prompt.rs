//! PURE. A prompt's content blocks to what `session/send` takes: text and attachments (bridge
//! behaviour 6.10). Nothing is trimmed and nothing dropped silently; what cannot be sent is an
//! error that names the block. Called by the session machine.

use agent_client_protocol::v1::schema as acp;
use base64::Engine as _;
use serde_json::{Value, json};

/// Blocks in one prompt.
const BLOCKS: usize = 100;
/// Bytes of one image or file, decoded.
const ONE: usize = 10 * 1024 * 1024;
/// Bytes of all of them.
const ALL: usize = 50 * 1024 * 1024;

/// What the engine is sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SendInput {
    /// `content` of `session/send`.
    pub content: String,
    /// `attachments` of `session/send`; leave the key out when empty.
    pub attachments: Vec<Value>,
    /// The user's own words (text blocks only): what a title is made of and a command is read
    /// from. Empty when the prompt has other blocks that come first.
    pub words: String,
    /// True when the prompt is text blocks alone: only then can it be a slash command or a steer.
    pub is_text_only: bool,
}

/// Why a prompt cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Nothing to send.
    #[error("The prompt is empty.")]
    Empty,
    /// More blocks than [`BLOCKS`].
    #[error("The prompt has {0} blocks; at most 100 can be sent at once.")]
    TooManyBlocks(usize),
    /// Audio cannot be sent, and is not advertised.
    #[error("Block {0}: the engine takes no audio. Send text, images or files.")]
    Audio(usize),
    /// An image of a kind the engine does not take.
    #[error("Block {0}: images of type {1} cannot be sent. Use PNG, JPEG, WebP, GIF, BMP or SVG.")]
    ImageType(usize, String),
    /// The data is not base64.
    #[error("Block {0}: the data is not valid base64.")]
    Base64(usize),
    /// One attachment is over the limit.
    #[error("Block {0}: the attachment has {1} bytes; at most 10 MiB can be sent.")]
    TooLarge(usize, usize),
    /// All attachments together are over the limit.
    #[error("The attachments have {0} bytes together; at most 50 MiB can be sent.")]
    AllTooLarge(usize),
    /// A block of a kind this bridge does not know.
    #[error("Block {0}: this kind of content cannot be sent.")]
    Unknown(usize),
}

impl PromptError {
    /// The error a client gets: invalid params.
    pub fn to_acp(&self) -> acp::Error {
        let mut error = acp::Error::invalid_params();
        error.message = self.to_string();
        error
    }
}

/// Reads the blocks of a prompt.
pub fn from_acp(blocks: &[acp::ContentBlock]) -> Result<SendInput, PromptError> {
    if blocks.len() > BLOCKS {
        return Err(PromptError::TooManyBlocks(blocks.len()));
    }
    let mut reader = Reader::default();
    for (index, block) in blocks.iter().enumerate() {
        reader.block(index, block)?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    pieces: Vec<String>,
    words: Vec<String>,
    attachments: Vec<Value>,
    bytes: usize,
    has_other: bool,
}

impl Reader {
    fn block(&mut self, index: usize, block: &acp::ContentBlock) -> Result<(), PromptError> {
        match block {
            acp::ContentBlock::Text(text) => {
                self.words.push(text.text.clone());
                self.pieces.push(text.text.clone());
                return Ok(());
            }
            acp::ContentBlock::Image(image) => self.image(index, image)?,
            acp::ContentBlock::ResourceLink(link) => {
                let path = path_or_uri(&link.uri);
                let name = if link.name.is_empty() { &path } else { &link.name };
                self.pieces.push(format!("[related resource: {name}]({path})"));
            }
            acp::ContentBlock::Resource(resource) => match &resource.resource {
                acp::EmbeddedResourceResource::TextResourceContents(text) => {
                    let path = path_or_uri(&text.uri);
                    self.pieces
                        .push(format!("<resource uri=\"{path}\">\n{}\n</resource>", text.text));
                }
                acp::EmbeddedResourceResource::BlobResourceContents(blob) => {
                    self.blob(index, blob)?;
                }
                _ => return Err(PromptError::Unknown(index)),
            },
            acp::ContentBlock::Audio(_) => return Err(PromptError::Audio(index)),
            _ => return Err(PromptError::Unknown(index)),
        }
        self.has_other = true;
        Ok(())
    }

    fn image(&mut self, index: usize, image: &acp::ImageContent) -> Result<(), PromptError> {
        let extension = image_extension(&image.mime_type)
            .ok_or_else(|| PromptError::ImageType(index, image.mime_type.clone()))?;
        let name = image
            .uri
            .as_deref()
            .and_then(file_name)
            .unwrap_or_else(|| format!("image-{}.{extension}", self.attachments.len() + 1));
        if image.data.is_empty()
            && let Some(path) = image.uri.as_deref().and_then(file_path)
        {
            let mime = &image.mime_type;
            self.attachments.push(
                json!({"kind": "image", "filename": name, "mimeType": mime, "localPath": path}),
            );
            return Ok(());
        }
        self.attach(index, "image", &name, &image.mime_type, &image.data)
    }

    fn blob(&mut self, index: usize, blob: &acp::BlobResourceContents) -> Result<(), PromptError> {
        let mime = blob.mime_type.as_deref().unwrap_or("application/octet-stream");
        let kind = match mime {
            "application/pdf" => "pdf",
            mime if image_extension(mime).is_some() => "image",
            _ => "file",
        };
        let name =
            file_name(&blob.uri).unwrap_or_else(|| format!("file-{}", self.attachments.len() + 1));
        self.pieces.push(format!("[attached: {name}]({})", path_or_uri(&blob.uri)));
        self.attach(index, kind, &name, mime, &blob.blob)
    }

    fn attach(
        &mut self,
        index: usize,
        kind: &str,
        name: &str,
        mime: &str,
        data: &str,
    ) -> Result<(), PromptError> {
        // Some clients send a whole data URL; the engine wants the bare data.
        let data = match data.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
            Some((_, bare)) => bare,
            None => data,
        };
        let size = base64::engine::general_purpose::STANDARD
            .decode(data)
            .map_err(|_bad| PromptError::Base64(index))?
            .len();
        if size > ONE {
            return Err(PromptError::TooLarge(index, size));
        }
        self.bytes += size;
        self.attachments.push(
            json!({"kind": kind, "filename": name, "mimeType": mime, "dataBase64": data, "sizeBytes": size}),
        );
        Ok(())
    }

    fn finish(self) -> Result<SendInput, PromptError> {
        if self.bytes > ALL {
            return Err(PromptError::AllTooLarge(self.bytes));
        }
        let mut content = self.pieces.join("\n");
        if content.trim().is_empty() && self.attachments.is_empty() {
            return Err(PromptError::Empty);
        }
        // The engine reads a leading "/compact" and the like as a command of its own; a prompt that
        // brings more than text is a message about that text.
        if self.has_other && content.trim_start().starts_with('/') {
            content.insert_str(0, "Message:\n");
        }
        Ok(SendInput {
            content,
            attachments: self.attachments,
            words: self.words.join("\n"),
            is_text_only: !self.has_other,
        })
    }
}

fn image_extension(mime: &str) -> Option<&'static str> {
    match mime.to_ascii_lowercase().as_str() {
        "image/png" => Some("png"),
        "image/jpeg" | "image/jpg" => Some("jpg"),
        "image/webp" => Some("webp"),
        "image/gif" => Some("gif"),
        "image/bmp" => Some("bmp"),
        "image/svg+xml" => Some("svg"),
        _ => None,
    }
}

/// The path of a `file:` URI, percent-decoded; other URIs as they are.
fn path_or_uri(uri: &str) -> String {
    file_path(uri).unwrap_or_else(|| uri.to_owned())
}

fn file_path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = percent_decode(rest);
    // file:///C:/x names C:/x.
    let has_drive = path.as_bytes().get(2) == Some(&b':');
    Some(match path.strip_prefix('/') {
        Some(drive) if has_drive => drive.to_owned(),
        _ => path,
    })
}

fn file_name(uri: &str) -> Option<String> {
    let path = path_or_uri(uri);
    let name = path.rsplit(['/', '\\']).next()?.split(['?', '#']).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Decodes `%41` sequences; a broken one, or bytes that are not UTF-8, stay as they are.
pub(super) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        if let Some(value) = hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            decoded.push(value);
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(blocks: &Value) -> Result<SendInput, PromptError> {
        let blocks: Vec<acp::ContentBlock> = serde_json::from_value(blocks.clone()).unwrap();
        from_acp(&blocks)
    }

    #[test]
    fn text_is_sent_unchanged() {
        let got = read(&json!([{"type": "text", "text": " /x a \n"}])).unwrap();
        assert_eq!(
            (got.content.as_str(), got.words.as_str(), got.is_text_only),
            (" /x a \n", " /x a \n", true)
        );
    }

    #[test]
    fn blocks_become_content_in_their_order() {
        for (blocks, want) in [
            (
                json!([{"type": "text", "text": "look at "}, {"type": "resource_link", "uri": "file:///tmp/some%20file.rs", "name": "f.rs"}]),
                "look at \n[related resource: f.rs](/tmp/some file.rs)",
            ),
            (
                json!([{"type": "resource_link", "uri": "https://x/y?z", "name": ""}]),
                "[related resource: https://x/y?z](https://x/y?z)",
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "file:///C:/n.txt", "text": "hello"}}, {"type": "text", "text": "sum up"}]),
                "<resource uri=\"C:/n.txt\">\nhello\n</resource>\nsum up",
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "file:///a/b.pdf", "blob": "QUJD", "mimeType": "application/pdf"}}]),
                "[attached: b.pdf](/a/b.pdf)",
            ),
        ] {
            assert_eq!(read(&blocks).unwrap().content, want, "{blocks}");
        }
    }

    #[test]
    fn images_and_files_become_attachments() {
        for (block, want) in [
            (
                json!({"type": "image", "mimeType": "image/png", "data": "QUJD"}),
                json!({"kind": "image", "filename": "image-1.png", "mimeType": "image/png", "dataBase64": "QUJD", "sizeBytes": 3}),
            ),
            (
                json!({"type": "image", "mimeType": "image/png", "data": "data:image/png;base64,QUJD", "uri": "file:///a/x.png"}),
                json!({"kind": "image", "filename": "x.png", "mimeType": "image/png", "dataBase64": "QUJD", "sizeBytes": 3}),
            ),
            (
                json!({"type": "image", "mimeType": "image/jpeg", "data": "", "uri": "file:///a/x.jpg"}),
                json!({"kind": "image", "filename": "x.jpg", "mimeType": "image/jpeg", "localPath": "/a/x.jpg"}),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a/b.pdf", "blob": "QUJD", "mimeType": "application/pdf"}}),
                json!({"kind": "pdf", "filename": "b.pdf", "mimeType": "application/pdf", "dataBase64": "QUJD", "sizeBytes": 3}),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "mem:///", "blob": "QUJD"}}),
                json!({"kind": "file", "filename": "file-1", "mimeType": "application/octet-stream", "dataBase64": "QUJD", "sizeBytes": 3}),
            ),
        ] {
            let got = read(&json!([block])).unwrap();
            assert_eq!((got.attachments, got.is_text_only), (vec![want], false), "{block}");
        }
    }

    #[test]
    fn a_leading_slash_beside_other_blocks_is_not_a_command() {
        let image = json!({"type": "image", "mimeType": "image/png", "data": "QUJD"});
        let got = read(&json!([{"type": "text", "text": "/compact this"}, image])).unwrap();
        assert_eq!(
            (got.content.as_str(), got.words.as_str()),
            ("Message:\n/compact this", "/compact this")
        );
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        let image =
            |mime: &str, data: &str| json!({"type": "image", "mimeType": mime, "data": data});
        for (blocks, want) in [
            (json!([]), PromptError::Empty),
            (json!([{"type": "text", "text": " \n"}]), PromptError::Empty),
            (
                json!([{"type": "text", "text": "x"}, {"type": "audio", "mimeType": "audio/wav", "data": "QUJD"}]),
                PromptError::Audio(1),
            ),
            (json!([image("image/tiff", "QUJD")]), PromptError::ImageType(0, "image/tiff".into())),
            (json!([image("image/png", "***")]), PromptError::Base64(0)),
            (json!([image("image/png", "QUJ")]), PromptError::Base64(0)),
            (
                json!(vec![json!({"type": "text", "text": "x"}); 101]),
                PromptError::TooManyBlocks(101),
            ),
        ] {
            let error = read(&blocks).unwrap_err();
            assert_eq!(error, want);
            assert_eq!(i32::from(error.to_acp().code), -32602);
        }
    }

    #[test]
    fn sizes_are_limited_one_by_one_and_together() {
        let data =
            |bytes: usize| base64::engine::general_purpose::STANDARD.encode(vec![0u8; bytes]);
        let image = |data: &str| json!({"type": "image", "mimeType": "image/png", "data": data});
        let big = data(ONE + 1);
        assert_eq!(read(&json!([image(&big)])), Err(PromptError::TooLarge(0, ONE + 1)));
        let full = data(ONE);
        let six = vec![image(&full); 6];
        assert_eq!(read(&json!(six)), Err(PromptError::AllTooLarge(6 * ONE)));
    }

    #[test]
    fn broken_percent_sequences_stay_as_they_are() {
        for (uri, want) in [
            ("file:///a%zz", "/a%zz"),
            ("file:///a%", "/a%"),
            ("file:///%ff", "/%ff"),
            ("file://localhost/a%C3%A9", "/aé"),
            ("file:///é%20", "/é "),
        ] {
            assert_eq!(path_or_uri(uri), want);
        }
    }
}
