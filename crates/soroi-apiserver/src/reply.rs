//! How is it said? Response bodies: whole, or a stream of lines.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;

use crate::status::ApiError;
use crate::store::encode;

/// The body of an answer.
pub struct ReplyBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Lines(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl std::fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => f.debug_tuple("Whole").field(bytes).finish(),
            Kind::Lines(_) => f.write_str("Lines"),
        }
    }
}

impl ReplyBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
    }

    pub(crate) fn lines(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Lines(Box::pin(stream)))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Kind::Lines(stream) => stream.as_mut().poll_next(cx).map(|line| line.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Kind::Lines(_) => SizeHint::default(),
        }
    }
}

/// What a verb answers with.
#[derive(Debug)]
pub(crate) struct Reply {
    code: StatusCode,
    body: ReplyBody,
    content_type: &'static str,
}

impl Reply {
    /// 200 with JSON text.
    pub(crate) fn ok(json: Bytes) -> Self {
        Self { code: StatusCode::OK, body: ReplyBody::whole(json), content_type: "application/json" }
    }

    /// 201 with JSON text.
    pub(crate) fn created(json: Bytes) -> Self {
        Self { code: StatusCode::CREATED, ..Self::ok(json) }
    }

    /// 200 with a value.
    pub(crate) fn value(value: &Value) -> Self {
        Self::ok(encode(value))
    }

    /// 200 with a word for people.
    pub(crate) fn word(word: &'static str) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::ok(Bytes::from_static(word.as_bytes())) }
    }

    /// The same in another media type.
    pub(crate) fn of_type(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }

    /// 200 with a stream of JSON lines.
    pub(crate) fn lines(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { body: ReplyBody::lines(stream), ..Self::ok(Bytes::new()) }
    }

    /// The HTTP response, with the warnings that came up on the way.
    pub(crate) fn into_response(self, warnings: &[String]) -> Response<ReplyBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.code;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        for warning in warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                response.headers_mut().append("warning", value);
            }
        }
        response
    }
}

impl From<&ApiError> for Reply {
    fn from(error: &ApiError) -> Self {
        let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, ..Self::value(&error.to_status()) }
    }
}
