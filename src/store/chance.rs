//! The system's random source.

use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;
use rand::{Rng as _, TryRng as _};

use crate::words::Chance;

/// Chance from the operating system. Keys, secrets and tokens come from here in the binary.
///
/// A system that gives no random bytes ends the process: to go on would be to mint secrets of zeros.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemChance;

impl Chance for SystemChance {
    fn fill(&mut self, bytes: &mut [u8]) {
        // Once more after a failure, which may be an interrupted call; the second failure ends the process.
        if SysRng.try_fill_bytes(bytes).is_err() {
            UnwrapErr(SysRng).fill_bytes(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_fills_everything_and_never_the_same_twice() {
        let (mut a, mut b) = ([0; 64], [0; 64]);
        SystemChance.fill(&mut a);
        SystemChance.fill(&mut b);
        assert_ne!(a, b);
        assert_ne!(a[32..], [0; 32]);
    }
}
