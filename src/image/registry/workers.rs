//! The same work on many things, some at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Error;

/// Does `work` on each of `items`, `threads` at once, and returns what came of them in their order. After a first failure
/// nothing new is begun.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    match work(item) {
                        Ok(result) => {
                            results.lock().expect("no holder panics")[index] = Some(result);
                        }
                        Err(error) => {
                            next.store(items.len(), Ordering::Relaxed);
                            failure.lock().expect("no holder panics").get_or_insert(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect("no holder panics") {
        return Err(error);
    }
    let results = results.into_inner().expect("no holder panics");
    Ok(results.into_iter().map(|result| result.expect("without a failure all were done")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_and_a_failure_ends_it() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = each(&items, 7, |item| Ok(item * 2)).unwrap();
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(each(&[], 3, |item: &u32| Ok(*item)).unwrap().is_empty());
        let seen = AtomicUsize::new(0);
        let error = each(&items, 2, |item| {
            seen.fetch_add(1, Ordering::Relaxed);
            if *item == 3 { Err(Error::Duplicate { name: "x".to_owned() }) } else { Ok(()) }
        });
        assert!(matches!(error, Err(Error::Duplicate { .. })));
        assert!(seen.into_inner() < 20);
    }
}
