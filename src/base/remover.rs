//! Removes trees behind their owners' backs.
//!
//! To remove a folder from a disk is mostly waiting: on ext4, 0.05 ms of processor time and up to 4 ms of the clock were
//! measured for each. A run gives up about twenty.

use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::scratch::remove_tree;

/// How many trees may wait; beyond that, whoever gives one up waits too.
const WAITING: usize = 64;

/// One thread, started when it is first needed. Dropping it waits until everything is removed.
#[derive(Debug, Default)]
pub(super) struct Remover {
    worker: Mutex<Option<Worker>>,
}

#[derive(Debug)]
struct Worker {
    orders: SyncSender<Order>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
enum Order {
    Remove(PathBuf),
    /// Answers when all earlier orders are done.
    Tell(SyncSender<()>),
}

impl Remover {
    /// Takes a tree over. What cannot be removed stays until the next sweep.
    pub(super) fn remove(&self, path: PathBuf) {
        self.order(Order::Remove(path));
    }

    /// Waits until everything given up so far is removed.
    pub(super) fn settle(&self) {
        if self.lock().is_none() {
            return;
        }
        let (answer, done) = sync_channel(1);
        self.order(Order::Tell(answer));
        // An error means that the worker has ended, and then nothing is left to wait for.
        let _ = done.recv();
    }

    fn order(&self, order: Order) {
        let orders = self.lock().get_or_insert_with(Worker::start).orders.clone();
        let failed = orders.send(order);
        debug_assert!(failed.is_ok(), "the worker ends when nobody can give orders any more");
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Worker>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    fn start() -> Self {
        let (orders, queue) = sync_channel(WAITING);
        let thread = std::thread::spawn(move || {
            for order in queue {
                match order {
                    Order::Remove(path) => {
                        if let Err(error) = remove_tree(&path) {
                            tracing::debug!(%error, "a scratch folder stays until the next sweep");
                        }
                    }
                    Order::Tell(answer) => {
                        // Whoever asked may have gone.
                        let _ = answer.send(());
                    }
                }
            }
        });
        Self { orders, thread }
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        let Some(Worker { orders, thread }) = self.lock().take() else { return };
        drop(orders);
        // The worker does not panic; were it to, its message has been printed.
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_gone_when_it_is_settled_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let remover = Remover::default();
        remover.settle();
        for number in 0..2 * WAITING {
            let path = folder.path().join(number.to_string());
            fs_err::create_dir_all(path.join("deep/er")).unwrap();
            remover.remove(path);
        }
        remover.settle();
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0);
        let path = folder.path().join("last");
        fs_err::create_dir_all(path.join("deep")).unwrap();
        remover.remove(path.clone());
        drop(remover);
        assert!(!path.exists());
    }
}
