#!/usr/bin/env bash
# bed: a real RabbitMQ admits exactly the list, in both ways of loading it, and cuts nobody else
#
# The bed itself is tests/kind_rabbitmq, since it loads lists that the library writes.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test --quiet --test kind_rabbitmq -- --ignored --nocapture
