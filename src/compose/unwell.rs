//! What contacts of a machine found that they could neither verify nor mend, and that nobody has verified since.

use std::collections::{BTreeMap, BTreeSet};

use crate::words::ServiceName;

/// What was found not well on a machine, and by which push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unwell {
    /// The push that found so of the machine as a whole: it failed at what is no service's own, or it is not known at what.
    pub machine: Option<u64>,
    /// Of single services.
    pub services: BTreeMap<ServiceName, u64>,
}

impl Unwell {
    /// A machine of which nothing of the kind is known.
    #[must_use]
    pub const fn no() -> Self {
        Self {
            machine: None,
            services: BTreeMap::new(),
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_no(&self) -> bool {
        self.machine.is_none() && self.services.is_empty()
    }

    /// `push` found a service not well; `None`: the machine.
    pub fn found(&mut self, service: Option<ServiceName>, push: u64) {
        match service {
            None => self.machine = Some(push),
            Some(service) => {
                self.services.insert(service, push);
            }
        }
    }

    /// A send was applied that did not look at all of the services for which `left` holds: these are as well as they were. Every other
    /// one was looked at, or is gone; and so was the machine as a whole, where `all_was_verified`.
    pub fn leave(&mut self, all_was_verified: bool, left: impl Fn(&ServiceName) -> bool) {
        self.machine = self.machine.filter(|_| !all_was_verified);
        self.services.retain(|service, _| left(service));
    }

    /// The pushes that found it.
    #[must_use]
    pub fn pushes(&self) -> BTreeSet<u64> {
        let of_services = self.services.values().copied();
        self.machine.into_iter().chain(of_services).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::name;

    fn found(services: &[Option<&str>]) -> Unwell {
        let mut unwell = Unwell::no();
        for (service, push) in services.iter().zip(1..) {
            unwell.found(service.map(name), push);
        }
        unwell
    }

    #[test]
    fn a_send_that_looked_at_the_service_ends_it_whatever_else_it_left() {
        let mut unwell = found(&[Some("broker"), Some("web")]);
        assert_eq!(unwell.pushes(), [1, 2].into());
        unwell.leave(false, |left| *left == name("web"));
        assert_eq!(unwell, {
            let mut web = Unwell::no();
            web.found(Some(name("web")), 2);
            web
        });
        unwell.leave(false, |left| *left == name("other"));
        assert!(unwell.is_no());
    }

    #[test]
    fn what_is_no_services_own_ends_with_a_send_that_left_nothing() {
        let mut unwell = found(&[None, Some("web")]);
        unwell.leave(false, |_| false);
        assert_eq!(unwell, found(&[None]));
        unwell.leave(true, |_| false);
        assert!(unwell.is_no());
    }

    #[test]
    fn a_service_that_is_found_so_again_is_told_by_the_later_push() {
        let unwell = found(&[Some("web"), None, Some("web")]);
        assert_eq!(unwell.pushes(), [2, 3].into());
    }
}
