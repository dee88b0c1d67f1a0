//! Which connections are served. No client can take the places of all others: each address has a limit, and when places run out, the
//! slowest connection is closed for a new one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Connections at a time, on both origins together.
const MAX_CONNECTIONS: usize = 1024;
/// Connections of one client at a time.
const MAX_PER_CLIENT: usize = 256;
/// A connection is not closed for others before it had this time to send a request and read the response.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Connections {
    max: usize,
    max_per_client: usize,
    open: Mutex<HashMap<u64, Connection>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Connection {
    client: ClientPrefix,
    since: Instant,
    progress: Arc<ConnectionProgress>,
}

/// What a connection has done so far.
#[derive(Debug, Default)]
pub struct ConnectionProgress {
    n_bytes: AtomicU64,
    /// Whether the client waits for us, so a lack of progress is not its fault.
    is_responding: AtomicBool,
    closing: Notify,
}

/// An IPv4 address, or the network of an IPv6 address, because a client has all addresses of its network.
type ClientPrefix = [u8; 8];

/// The place of a connection, until it is dropped.
pub struct Admission {
    connections: Arc<Connections>,
    number: u64,
    pub progress: Arc<ConnectionProgress>,
}

impl Default for Connections {
    fn default() -> Connections {
        Connections::new(MAX_CONNECTIONS, MAX_PER_CLIENT)
    }
}

impl Connections {
    fn new(max: usize, max_per_client: usize) -> Connections {
        Connections { max, max_per_client, open: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// A place for a new connection, after closing the slowest one if places have run out. `None` if all are too new to judge.
    pub fn admit(self: &Arc<Connections>, ip: IpAddr, now: Instant) -> Option<Admission> {
        let client = client_prefix(ip);
        let mut open = self.open();
        let n_own = open.values().filter(|connection| connection.client == client).count();
        if n_own >= self.max_per_client || open.len() >= self.max {
            let is_candidate =
                |connection: &&Connection| n_own < self.max_per_client || connection.client == client;
            let number = slowest(open.iter().filter(|(_, connection)| is_candidate(connection)), now)?;
            open.remove(&number)?.progress.closing.notify_one();
        }
        let (number, progress) =
            (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(ConnectionProgress::default()));
        open.insert(number, Connection { client, since: now, progress: progress.clone() });
        Some(Admission { connections: self.clone(), number, progress })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Connection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.connections.open().remove(&self.number);
    }
}

impl ConnectionProgress {
    pub fn add(&self, n_bytes: usize) {
        self.n_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    pub fn set_responding(&self, is_responding: bool) {
        self.is_responding.store(is_responding, Ordering::Relaxed);
    }

    /// Completes when the connection must end.
    pub async fn closing(&self) {
        self.closing.notified().await;
    }
}

/// The connection with the fewest bytes per second.
fn slowest<'c>(open: impl Iterator<Item = (&'c u64, &'c Connection)>, now: Instant) -> Option<u64> {
    let speed = |(number, connection): (&u64, &Connection)| {
        let age = now.saturating_duration_since(connection.since);
        let is_busy = connection.progress.is_responding.load(Ordering::Relaxed);
        let n_bytes = connection.progress.n_bytes.load(Ordering::Relaxed);
        (age >= GRACE && !is_busy).then(|| (n_bytes as f64 / age.as_secs_f64(), *number))
    };
    let slowest = open.filter_map(speed).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    slowest.map(|(_, number)| number)
}

fn client_prefix(ip: IpAddr) -> ClientPrefix {
    let mut client = [0; 8];
    match ip.to_canonical() {
        IpAddr::V4(ip) => client[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => client.copy_from_slice(&ip.octets()[..8]),
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(place: &Admission) -> bool {
        !place.connections.open().contains_key(&place.number)
    }

    #[test]
    fn the_slowest_connection_of_a_client_makes_room() {
        let connections = Arc::new(Connections::new(10, 3));
        let (start, client) = (Instant::now(), IpAddr::from([192, 0, 2, 1]));
        let at = |secs: u64| start + Duration::from_secs(secs);
        let own: Vec<Admission> = (0..3).map(|_| connections.admit(client, start).unwrap()).collect();
        own.iter().zip([900, 20, 40]).for_each(|(place, n_bytes)| place.progress.add(n_bytes));
        assert!(connections.admit(client, at(1)).is_none(), "all are new");
        assert!(connections.admit([192, 0, 2, 2].into(), at(1)).is_some(), "another client has room");
        own[1].progress.set_responding(true);
        let _new = connections.admit(client, at(10)).unwrap();
        assert_eq!(own.iter().map(is_closed).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn a_full_server_closes_the_slowest_of_all() {
        let connections = Arc::new(Connections::new(4, 3));
        let start = Instant::now();
        let slow: Vec<Admission> =
            (0..4).filter_map(|n| connections.admit([192, 0, 2, n].into(), start)).collect();
        slow.iter().enumerate().for_each(|(n, place)| place.progress.add(10 * (n + 1)));
        let later = start + Duration::from_secs(10);
        let new = connections.admit([198, 51, 100, 1].into(), later).unwrap();
        assert!(is_closed(&slow[0]) && !is_closed(&slow[1]) && !is_closed(&new));
        drop((slow, new));
        assert!(connections.open().is_empty());
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let client = |ip: &str| client_prefix(ip.parse().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.2"), client("192.0.2.1"));
    }
}
