//! Reading many rows: whoever scans hands them on in batches, and all cores open and parse them. Opening and parsing
//! is nearly all of the work of a load; few rows are read where they are scanned.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use super::StoreError;
use super::vault::Rows;

/// The bytes of a batch. A store below that starts no thread.
const BATCH: usize = 1024 * 1024;
/// More threads than this gain nothing: one scans.
const THREADS_MOST: usize = 8;

type Batch = Vec<(String, Vec<u8>)>;

/// What `read` makes of each row below `prefix`, in no order. Holds at most two batches a thread besides.
pub(super) fn read_all<T: Send>(
    rows: &dyn Rows,
    prefix: &str,
    read: impl Fn(&str, &[u8]) -> Result<T, StoreError> + Sync,
) -> Result<Vec<T>, StoreError> {
    let most = std::thread::available_parallelism().map_or(1, NonZero::get);
    let most = most.min(THREADS_MOST);
    let (sender, receiver) = sync_channel::<Batch>(most);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let (mut batch, mut bytes) = (Batch::new(), 0_usize);
        let scanned = rows.scan(prefix, &mut |name, row| {
            bytes = bytes.saturating_add(row.len());
            batch.push((name.to_owned(), row.to_vec()));
            if bytes >= BATCH {
                if threads.len() < most {
                    threads.push(scope.spawn(|| read_batches(&receiver, &read)));
                }
                bytes = 0;
                // The receiver outlives this loop, and every thread takes batches until there are no more.
                let _ = sender.send(std::mem::take(&mut batch));
            }
            Ok(())
        });
        drop(sender);
        let mut all = Vec::new();
        let mut result = scanned.and_then(|()| read_batch(&batch, &read, &mut all));
        for thread in threads {
            match thread.join() {
                Ok(Ok(found)) => all.extend(found),
                Ok(Err(e)) => result = result.and(Err(e)),
                Err(panicked) => std::panic::resume_unwind(panicked),
            }
        }
        result.map(|()| all)
    })
}

/// Takes batches until the sender is gone; after an error too, or the sender would wait for ever.
fn read_batches<T>(
    receiver: &Mutex<Receiver<Batch>>,
    read: &impl Fn(&str, &[u8]) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let (mut found, mut result) = (Vec::new(), Ok(()));
    loop {
        let next = receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(batch) = next else {
            return result.map(|()| found);
        };
        if result.is_ok() {
            result = read_batch(&batch, read, &mut found);
        }
    }
}

fn read_batch<T>(
    batch: &Batch,
    read: &impl Fn(&str, &[u8]) -> Result<T, StoreError>,
    found: &mut Vec<T>,
) -> Result<(), StoreError> {
    for (name, row) in batch {
        found.push(read(name, row)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn table(rows: usize) -> BTreeMap<String, Vec<u8>> {
        let row = |n| (format!("machine/{n:06}"), vec![7; 4096]);
        (0..rows).map(row).collect()
    }

    #[test]
    fn every_row_is_read_once_whether_few_or_many() {
        for count in [0, 1, 255, 256, 257, 5000] {
            let table = table(count);
            let read = read_all(&table, "machine/", |name, _| Ok(name.to_owned())).unwrap();
            assert_eq!(read.len(), count);
            assert_eq!(read.iter().collect::<BTreeSet<_>>(), table.keys().collect());
        }
    }

    #[test]
    fn an_error_in_any_row_ends_the_reading_with_it() {
        let table = table(5000);
        for wrong in ["machine/000000", "machine/002500", "machine/004999"] {
            let read = read_all(&table, "machine/", |name, _| match name {
                _ if name == wrong => Err(StoreError::Simulated),
                _ => Ok(()),
            });
            assert!(matches!(read, Err(StoreError::Simulated)), "{wrong}");
        }
        let all = read_all(&table, "machine/", |_, _| {
            Err::<(), _>(StoreError::Simulated)
        });
        assert!(all.is_err());
    }
}
