//! The courier `ssh` (being built).

use std::time::Instant;

use super::courier::Target;
use super::dispatch::CourierSettings;
use super::error::DeliveryError;
use super::link::{Courier, Link};
use super::script::Launch;

#[derive(Debug)]
pub(super) struct Ssh {}

impl Ssh {
    pub(super) fn new(_: &CourierSettings) -> Self {
        Self {}
    }
}

impl Courier for Ssh {
    fn start(
        &self,
        target: &Target,
        _: &Launch,
        _: Instant,
    ) -> Result<Box<dyn Link>, DeliveryError> {
        Err(DeliveryError::Channel {
            why: format!("ssh to {} is being built", target.node.host()),
        })
    }
}
