//! What a push knows: the state, and how every machine stands in it. Looking at all machines is most of what a
//! push computes, so it is done once for as long as nothing changes.

use std::ops::Deref;
use std::sync::Arc;

use super::behind::Survey;
use crate::store::State;

/// The state, which is read as it is, and changed through [`Known::edit`] only.
pub(super) struct Known {
    state: State,
    survey: Option<Arc<Survey>>,
}

impl Known {
    pub fn of(state: State) -> Self {
        Self {
            state,
            survey: None,
        }
    }

    /// The state, to be changed: what was seen of the machines no longer holds.
    pub fn edit(&mut self) -> &mut State {
        self.survey = None;
        &mut self.state
    }

    /// What was last seen, or else what `look` sees.
    pub fn survey(&mut self, look: impl FnOnce(&State) -> Survey) -> Arc<Survey> {
        let state = &self.state;
        let survey = self.survey.get_or_insert_with(|| Arc::new(look(state)));
        Arc::clone(survey)
    }
}

impl Deref for Known {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}
