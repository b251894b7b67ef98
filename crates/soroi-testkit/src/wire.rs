//! What can go wrong between a client and the API server, and when?
//!
//! A [`Wire`] lies between the product and its API server and misbehaves from a seed: it delays and
//! reorders, refuses writes as the server may (409, 429, 500), loses requests and replies, cuts
//! watches and lets their version expire. It can also count writes and, at a chosen one, hang for
//! ever: that is the crash of a process whose last write took effect and who never learnt of it.
//!
//! Knows HTTP and nothing of what the objects mean.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use kube::client::Body;
use soroi_clock::{Clock, Machine};
use soroi_watch::SplitMix64;
use tower::Service;

/// An error of the wire or of the service behind it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Trouble stops after so many faults, so that what must be seen in the end can be seen.
const FAULTS_MAX: u32 = 60;
/// A storm lasts until the story says that it is over; this bounds one that never would.
const STORM_FAULTS_MAX: u32 = 2_000;
/// One write in so many is the last of its process, in a storm.
const STORM_CRASH_ONE_IN: u64 = 60;
/// The longest that a request or a reply is on its way; two of them in flight change order.
const DELAY_MILLIS_MAX: u64 = 25;
/// The longest that a watch lives when watches are cut.
const WATCH_MILLIS_MAX: u64 = 20_000;
/// Requests that are remembered for the trace of a failure.
const LOG_MAX: usize = 60;
/// The longest that a process is away in a storm.
pub const STORM_RESTART_MAX: Duration = Duration::from_secs(60);
/// How long a crashed process takes to come back.
const RESTART: Duration = Duration::from_secs(1);

/// How a wire behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It carries everything, at once.
    None,
    /// It misbehaves from this seed.
    Seed(u64),
    /// After this write (from 1) took effect, nothing comes back any more.
    CrashAfterWrite(u64),
    /// It misbehaves from this seed for longer, and kills the process after some of its writes.
    Storm(u64),
}

impl Trouble {
    /// What its choices are drawn from.
    pub const fn seed(self) -> u64 {
        match self {
            Self::Seed(seed) | Self::Storm(seed) => seed,
            Self::None | Self::CrashAfterWrite(_) => 0,
        }
    }

    /// After how many faults everything is carried.
    const fn faults_max(self) -> u32 {
        match self {
            Self::Seed(_) => FAULTS_MAX,
            Self::Storm(_) => STORM_FAULTS_MAX,
            Self::None | Self::CrashAfterWrite(_) => 0,
        }
    }
}

/// The state of a wire; clones are the same wire, and the same process at its end.
#[derive(Clone)]
pub struct Wire {
    clock: Clock,
    state: Arc<Mutex<State>>,
    crashed: Arc<tokio::sync::Notify>,
    /// Who is at its end, if that is one of several.
    who: &'static str,
    /// While it sleeps nothing is sent, and nothing that comes is heard.
    machine: Option<Machine>,
}

struct State {
    trouble: Trouble,
    random: SplitMix64,
    faults: u32,
    writes: u64,
    log: VecDeque<String>,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Carried,
    /// Answered by the wire; never performed.
    Refused(StatusCode),
    /// Never performed, and no answer.
    RequestLost,
    /// Performed, and no answer.
    ReplyLost,
    /// Performed; the process is dead before the answer comes.
    Crash,
}

impl Wire {
    /// A wire in good order.
    pub fn new(clock: Clock, trouble: Trouble) -> Self {
        let random = SplitMix64::new(trouble.seed());
        let state = State { trouble, random, faults: 0, writes: 0, log: VecDeque::new() };
        let crashed = Arc::new(tokio::sync::Notify::new());
        Self { clock, state: Arc::new(Mutex::new(state)), crashed, who: "", machine: None }
    }

    /// The same wire for another process, on this machine: it crashes on its own.
    pub(crate) fn process(&self, who: &'static str, machine: Machine) -> Self {
        Self { crashed: Arc::default(), who, machine: Some(machine), ..self.clone() }
    }

    /// `service` as it is reached over this wire.
    pub(crate) fn service<S>(&self, service: S) -> Wired<S> {
        Wired { wire: self.clone(), service }
    }

    /// A client whose requests go over this wire to `service`. Must be called within a runtime.
    pub fn client<S, B>(&self, service: S) -> kube::Client
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        kube::Client::new(self.service(service), "default")
    }

    /// Resolves when the crash has happened. The process must then be dropped.
    pub async fn crash(&self) {
        self.crashed.notified().await;
    }

    /// Carries everything from now on.
    pub fn heal(&self) {
        self.state().trouble = Trouble::None;
    }

    /// How many writes went over the wire.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// How often it misbehaved.
    pub fn faults(&self) -> u32 {
        self.state().faults
    }

    /// Whether a process that crashes now would be followed by more crashes.
    pub fn storms(&self) -> bool {
        matches!(self.state().trouble, Trouble::Storm(_))
    }

    /// How long a process takes to come back after a crash: a second, in a storm anything up to a
    /// minute.
    pub fn restart(&self) -> Duration {
        let mut state = self.state();
        match state.trouble {
            Trouble::Storm(_) => Duration::from_millis(1 << state.random.below(17)).min(STORM_RESTART_MAX),
            _ => RESTART,
        }
    }

    /// The last requests and what became of them, oldest first.
    pub fn log(&self) -> Vec<String> {
        self.state().log.iter().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not hide what the wire has seen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_line(&self, line: String) {
        let mut state = self.state();
        if state.log.len() == LOG_MAX {
            state.log.pop_front();
        }
        state.log.push_back(line);
    }
}

impl State {
    fn fate(&mut self, request: &Request<Body>) -> Fate {
        let write = !matches!(*request.method(), Method::GET | Method::HEAD);
        if write {
            self.writes += 1;
        }
        match self.trouble {
            Trouble::None => Fate::Carried,
            Trouble::CrashAfterWrite(at) if write && self.writes == at => Fate::Crash,
            Trouble::CrashAfterWrite(_) => Fate::Carried,
            Trouble::Seed(_) | Trouble::Storm(_) => self.drawn_fate(request.method(), write),
        }
    }

    fn drawn_fate(&mut self, method: &Method, write: bool) -> Fate {
        if self.faults >= self.trouble.faults_max() {
            return Fate::Carried;
        }
        let storm = matches!(self.trouble, Trouble::Storm(_));
        if storm && write && self.random.below(STORM_CRASH_ONE_IN) == 0 {
            self.faults += 1;
            return Fate::Crash;
        }
        let fate = match self.random.below(24) {
            0 if write => Fate::ReplyLost,
            1 => Fate::RequestLost,
            // A conflict is an answer to an update; a create or a delete is told to come back.
            2 if matches!(*method, Method::PUT | Method::PATCH) => Fate::Refused(StatusCode::CONFLICT),
            2 if write => Fate::Refused(StatusCode::TOO_MANY_REQUESTS),
            3 => Fate::Refused(StatusCode::INTERNAL_SERVER_ERROR),
            _ => return Fate::Carried,
        };
        self.faults += 1;
        fate
    }

    fn delay(&mut self) -> Duration {
        match self.trouble {
            Trouble::Seed(_) => Duration::from_millis(self.random.below(DELAY_MILLIS_MAX)),
            // Mostly as fast as that, sometimes slower than other things that happen.
            Trouble::Storm(_) => {
                let most = 1 << self.random.below(12);
                Duration::from_millis(self.random.below(most))
            }
            _ => Duration::ZERO,
        }
    }

    /// How long a watch lives, if it is cut; and whether its version then counts as expired.
    fn cut(&mut self) -> Option<(Duration, bool)> {
        match self.trouble {
            Trouble::Seed(_) | Trouble::Storm(_) if self.faults < self.trouble.faults_max() => {
                self.faults += 1;
                let life = Duration::from_millis(self.random.below(WATCH_MILLIS_MAX));
                Some((life, self.random.below(4) == 0))
            }
            _ => None,
        }
    }
}

/// The service that a wire's client calls.
#[derive(Clone)]
pub(crate) struct Wired<S> {
    wire: Wire,
    service: S,
}

impl<S, B> Service<Request<Body>> for Wired<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The service that was polled ready is the one that must be called.
        let fresh = self.service.clone();
        let service = std::mem::replace(&mut self.service, fresh);
        Box::pin(carry(self.wire.clone(), service, request))
    }
}

async fn carry<S, B>(
    wire: Wire,
    mut service: S,
    request: Request<Body>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (fate, there, back) = {
        let mut state = wire.state();
        (state.fate(&request), state.delay(), state.delay())
    };
    let colon = if wire.who.is_empty() { "" } else { ": " };
    let what = format!("{}{colon}{} {}", wire.who, request.method(), request.uri().path());
    let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let reading = matches!(*request.method(), Method::GET);
    wire.pause(there).await;
    // Whatever was checked before it was sent was checked before the sleep.
    wire.awake().await;
    match fate {
        Fate::RequestLost => {
            wire.log_line(format!("{what}: request lost"));
            return Err("the connection was reset (before the request arrived)".into());
        }
        Fate::Refused(code) => {
            wire.log_line(format!("{what}: refused {code}"));
            return Ok(refusal(code));
        }
        Fate::Carried | Fate::ReplyLost | Fate::Crash => {}
    }
    let response = service.call(request).await.map_err(Into::into)?;
    if !reading {
        wire.log_line(format!("{what}: {} {fate:?}", response.status().as_u16()));
    }
    if fate == Fate::Crash {
        wire.crashed.notify_one();
        std::future::pending::<()>().await;
    }
    wire.pause(back).await;
    wire.awake().await;
    if fate == Fate::ReplyLost {
        return Err("the connection was reset (after the request was carried out)".into());
    }
    let cut = if watch && response.status().is_success() { wire.state().cut() } else { None };
    Ok(response.map(|body| match (cut, watch) {
        (Some((life, expired)), _) => wire.heard(cut_short(body, wire.clock.clone(), life, expired)),
        (None, true) => wire.heard(body.map_err(Into::into).boxed_unsync()),
        (None, false) => body.map_err(Into::into).boxed_unsync(),
    }))
}

impl Wire {
    async fn pause(&self, span: Duration) {
        if !span.is_zero() {
            self.clock.sleep(span).await;
        }
    }

    async fn awake(&self) {
        if let Some(machine) = &self.machine {
            machine.awake().await;
        }
    }

    /// The body of a watch, of which nothing is heard in sleep.
    fn heard(&self, body: UnsyncBoxBody<Bytes, BoxError>) -> UnsyncBoxBody<Bytes, BoxError> {
        let Some(machine) = self.machine.clone() else { return body };
        let frames = BodyStream::new(body).then(move |frame| {
            let machine = machine.clone();
            async move {
                machine.awake().await;
                frame
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// The body of a watch that ends after `life`, with an `ERROR` 410 event if its version expired.
fn cut_short<B>(body: B, clock: Clock, life: Duration, expired: bool) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let end = Box::pin(async move { clock.sleep(life).await });
    let last = expired.then(|| {
        let status = status_object(StatusCode::GONE, "Expired", "too old resource version");
        Ok(http_body::Frame::data(Bytes::from(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n"))))
    });
    let frames = BodyStream::new(body)
        .map(|frame| frame.map_err(Into::into))
        .take_until(end)
        .chain(futures::stream::iter(last));
    StreamBody::new(frames).boxed_unsync()
}

fn refusal(code: StatusCode) -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    let (reason, message) = match code {
        StatusCode::CONFLICT => {
            ("Conflict", "the object has been modified; please apply your changes to the latest version")
        }
        StatusCode::TOO_MANY_REQUESTS => ("TooManyRequests", "too many requests, please try again later"),
        _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
    };
    let body = Full::new(Bytes::from(status_object(code, reason, message)));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

fn status_object(code: StatusCode, reason: &str, message: &str) -> String {
    serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answering = tower::util::BoxCloneService<Request<Body>, Response<Full<Bytes>>, BoxError>;

    /// Answers every request, and counts those that were performed.
    fn counting() -> (Answering, Arc<Mutex<u32>>) {
        let count = Arc::new(Mutex::new(0));
        let counter = count.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            *counter.lock().unwrap() += 1;
            std::future::ready(Ok(Response::new(Full::new(Bytes::from_static(b"{}")))))
        });
        (tower::util::BoxCloneService::new(service), count)
    }

    fn write() -> Request<Vec<u8>> {
        Request::patch("/api/v1/nodes/a").body(Vec::new()).unwrap()
    }

    fn simulated<F: Future>(work: impl FnOnce(Clock) -> F) -> F::Output {
        let runtime = soroi_clock::simulated_runtime().unwrap();
        runtime.block_on(async { work(Clock::simulated(jiff::Timestamp::UNIX_EPOCH)).await })
    }

    #[test]
    fn a_seed_gives_the_same_trouble_every_time() {
        let play = |seed| {
            simulated(async move |clock| {
                let wire = Wire::new(clock, Trouble::Seed(seed));
                let (service, _) = counting();
                let client = wire.client(service);
                for _ in 0..200 {
                    let _ = client.request::<serde_json::Value>(write()).await;
                }
                wire.log()
            })
        };
        assert_eq!(play(1), play(1));
        assert_ne!(play(1), play(2));
        for word in ["request lost", "409", "500", "ReplyLost"] {
            let found = (0..20).any(|seed| play(seed).iter().any(|line| line.contains(word)));
            assert!(found, "no seed gives {word}");
        }
    }

    #[test]
    fn a_crash_comes_after_its_write_took_effect() {
        simulated(async |clock| {
            let wire = Wire::new(clock, Trouble::CrashAfterWrite(3));
            let (service, count) = counting();
            let client = wire.client(service);
            let process = async {
                loop {
                    client.request::<serde_json::Value>(write()).await.unwrap();
                }
            };
            tokio::select! {
                biased;
                () = process => unreachable!("it writes for ever"),
                () = wire.crash() => {}
            }
            assert_eq!(*count.lock().unwrap(), 3);
            assert_eq!(wire.writes(), 3);
        });
    }
}
