//! The server on a socket, asked by hand.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use soroi_clock::Clock;
use tokio::net::TcpListener;

use super::{Door, serve};
use crate::{ApiServer, Options};

/// Sends a request as it stands; the first line of the answer and its body.
async fn ask(door: Door, request: &str) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let request = request.to_owned();
    let asking = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        // Who is refused may be cut off while it still writes.
        let _ = stream.write_all(request.as_bytes());
        if !request.contains("Host: x") {
            // Nothing more comes; the server waits for the rest of a request for two minutes.
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    let answer = tokio::select! {
        biased;
        answer = asking => answer.unwrap(),
        () = serve(listener, door, Clock::real()) => unreachable!("it serves for ever"),
    };
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

fn door(token: Option<&str>) -> Door {
    let service =
        ApiServer::new(Clock::real(), Options { body_bytes_max: 1_000, ..Options::default() }).service();
    match token {
        Some(token) => Door::guarded(service, token),
        None => Door::open(service),
    }
}

fn on_sockets<F: Future>(story: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(story)
}

#[test]
fn it_answers_on_a_socket() {
    on_sockets(async {
        let request = "GET /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let (line, body) = ask(door(None), request).await;
        assert_eq!(line, "HTTP/1.1 200 OK");
        assert!(body.contains("\"kind\":\"Namespace\""), "{body}");
    });
}

#[test]
fn only_who_knows_the_token_comes_in() {
    on_sockets(async {
        let with =
            |header: &str| format!("GET /version HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n");
        for (header, expected) in [
            ("Authorization: Bearer secret\r\n", "HTTP/1.1 200 OK"),
            ("Authorization: Bearer secre\r\n", "HTTP/1.1 401 Unauthorized"),
            ("Authorization: Bearer secret2\r\n", "HTTP/1.1 401 Unauthorized"),
            ("Authorization: Basic secret\r\n", "HTTP/1.1 401 Unauthorized"),
            ("", "HTTP/1.1 401 Unauthorized"),
        ] {
            let (line, _) = ask(door(Some("secret")), &with(header)).await;
            assert_eq!(line, expected, "{header}");
        }
    });
}

#[test]
fn what_is_too_large_is_refused() {
    on_sockets(async {
        let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
        let long = format!("X: {}\r\n", "a".repeat(100_000));
        for headers in [many, long] {
            let request = format!("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
            let (line, _) = ask(door(None), &request).await;
            assert_eq!(line, "HTTP/1.1 431 Request Header Fields Too Large");
        }
        let body = "a".repeat(1_001);
        let request = format!(
            "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let (line, said) = ask(door(None), &request).await;
        assert_eq!(line, "HTTP/1.1 413 Payload Too Large");
        assert!(said.contains("Request entity too large: limit is 1000"), "{said}");
    });
}

#[test]
fn nonsense_harms_nobody() {
    on_sockets(async {
        for request in ["\r\n\r\n", "GET\r\n\r\n", "\u{16}\u{3}\u{1}hello", "GET /%zz/\u{1} HTTP/1.1\r\n\r\n"]
        {
            let (line, _) = ask(door(None), request).await;
            assert!(line.is_empty() || line.starts_with("HTTP/1.1 4"), "{request:?}: {line}");
        }
    });
}
