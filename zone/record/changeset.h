#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/heap_name.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::zone {

/// One resource record of class IN; RDATA is uncompressed, checked wire format. The struct is
/// small, since a large changeset has millions of records.
struct Record {
  dns::HeapName owner;
  dns::RRType type{};
  dns::Ttl ttl{};
  Bytes rdata;
};
static_assert(sizeof(Record) <= 40, "each changed record takes as much several times");

/// A changeset between two versions of one zone: the form of every change (RFC 2136 update, IXFR,
/// edited file, control transaction, journal replay). Order does not matter: all of `removed` goes
/// out, then all of `added` comes in. TTLs of removed records are ignored. An added record sets the
/// TTL of its whole RRset (RFC 2181 §5.2). Both SOA records are in the lists when the serial moves.
struct Changeset {
  dns::Name zone;
  std::vector<Record> removed;
  std::vector<Record> added;
  [[nodiscard]] bool empty() const noexcept { return removed.empty() && added.empty(); }
};

/// Flat form for the journal and for other stores: u16 zone name, counts, records.
Bytes encode(const Changeset& changes);
/// Appends the same form to `out`.
void encode(const Changeset& changes, Bytes& out);
Result<Changeset> decode_changes(ByteView bytes);

}  // namespace pando::zone
