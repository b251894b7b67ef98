//! How do other programs reach the server? HTTP/1.1 on a socket, within bounds.
//!
//! Knows connections, and who may come in. Must never know what is asked.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use soroi_clock::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::Service as _;

use crate::reply::{Reply, ReplyBody};
use crate::{ApiError, ApiService};

/// Connections at once; every kubectl takes one or two, a controller one per watch.
pub const CONNECTIONS_MAX: usize = 1_000;
/// Bytes of a request's head (the line and all headers); as much as Go's servers take by default is
/// a megabyte, which nobody needs.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Lines of a request's head.
const HEADERS_MAX: usize = 100;
/// Until the head of a request is there, on a connection at rest, too.
const REST_MAX: Duration = Duration::from_secs(120);

/// The server's door: what is behind it, and who may pass.
#[derive(Clone, Debug)]
pub struct Door {
    service: ApiService,
    /// Whoever comes must show it as a bearer token; without one all may come.
    token: Option<Arc<str>>,
}

impl Door {
    /// A door that is open to whoever can reach the socket: for loopback.
    pub fn open(service: ApiService) -> Self {
        Self { service, token: None }
    }

    /// A door for those who know the token.
    pub fn guarded(service: ApiService, token: &str) -> Self {
        Self { service, token: Some(Arc::from(token)) }
    }

    /// Serves one connection until either side ends it.
    ///
    /// # Errors
    /// When the other side breaks the protocol or the bounds of a request's head, or goes away in the
    /// middle of something.
    pub async fn serve<S>(self, stream: S) -> Result<(), hyper::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(move |request: Request<Incoming>| self.clone().answer(request));
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REST_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .await
    }

    async fn answer(mut self, request: Request<Incoming>) -> Result<Response<ReplyBody>, Infallible> {
        let refused = if head_bytes(&request) > HEAD_BYTES_MAX {
            Some(ApiError::head_too_large(HEAD_BYTES_MAX))
        } else if !self.admits(request.headers()) {
            Some(ApiError::unauthorized())
        } else {
            None
        };
        if let Some(error) = refused {
            return Ok(Reply::from(&error).into_response(&[]));
        }
        self.service.call(request).await
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let shown = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok()).unwrap_or("");
        let shown = shown.strip_prefix("Bearer ").unwrap_or("").as_bytes();
        // Every byte is looked at, so that the time does not tell how many were right.
        let differences = token.bytes().zip(shown).fold(0, |sum, (ours, theirs)| sum | (ours ^ theirs));
        token.len() == shown.len() && differences == 0
    }
}

/// The bytes of a request's head. The parser's own bound is that of its buffer, which may grow beyond it.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    headers.sum::<usize>().saturating_add(path)
}

/// Serves everybody who connects, for ever. Dropping the future ends all connections.
pub async fn serve(listener: TcpListener, door: Door, clock: Clock) {
    accept(listener, clock, |stream| {
        // Answers are written in one piece; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        door.clone().serve(stream)
    })
    .await;
}

/// Hands over everybody who connects, for ever, but no more at once than [`CONNECTIONS_MAX`]. Dropping the
/// future ends all connections.
pub async fn accept<F, C>(listener: TcpListener, clock: Clock, connection: F)
where
    F: Fn(TcpStream) -> C,
    C: Future<Output = Result<(), hyper::Error>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream);
                    connections.spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%error, "a connection ended early");
                        }
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection was lost before it began");
                    // Out of files, say: at once it would be the same again.
                    clock.sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
