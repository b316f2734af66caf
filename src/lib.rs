//! `grid` delivers a mesh of machines: one push leaves it consistent.
//!
//! The rooms, from the top down; a room imports only what stands below it (DESIGN.md, section 8):
//! [`cli`], [`site`], [`push`], [`delivery`], [`store`], [`evidence`], [`compose`], [`signals`], [`provision`], [`mesh`],
//! [`kinds`], [`words`].
#![forbid(unsafe_code)]

pub mod cli;
pub mod compose;
pub mod delivery;
pub mod evidence;
pub mod kinds;
pub mod mesh;
pub mod provision;
pub mod push;
pub mod signals;
pub mod site;
pub mod store;
pub mod words;
