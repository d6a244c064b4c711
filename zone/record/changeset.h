#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/field_reader.h"
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

/// The client that made a change, in words for people. Both texts have printable ASCII characters
/// alone, at most kMaxAuthorText of them: they come from strangers, and go to terminals and logs.
struct Author {
  std::string name{};    ///< "key NAME", "user NAME" or "API key NAME"; empty: unsigned, not known
  std::string client{};  ///< IP address; empty: a local client, or not known
  [[nodiscard]] bool is_known() const noexcept { return !name.empty() || !client.empty(); }
  bool operator==(const Author&) const = default;
};
inline constexpr std::size_t kMaxAuthorText = 120;
/// Replaces other characters by `?`, and cuts long texts.
[[nodiscard]] Author make_author(std::string_view name, std::string_view client);
/// Appends | u8 octets, name | u8 octets, client |; nothing for an unknown author.
void put_author(Bytes& out, const Author& author);
/// The author in all that is left of `fields`.
[[nodiscard]] Author take_author(dns::FieldReader& fields);

/// A changeset between two versions of one zone: the form of every change (RFC 2136 update, IXFR,
/// edited file, control transaction, journal replay). Order does not matter: all of `removed` goes
/// out, then all of `added` comes in. TTLs of removed records are ignored. An added record sets the
/// TTL of its whole RRset (RFC 2181 §5.2). Both SOA records are in the lists when the serial moves.
struct Changeset {
  dns::Name zone;
  std::vector<Record> removed;
  std::vector<Record> added;
  Author author{};
  [[nodiscard]] bool empty() const noexcept { return removed.empty() && added.empty(); }
};

/// Flat form for the journal and for other stores: u16 zone name, counts, records.
Bytes encode(const Changeset& changes);
/// Appends the same form to `out`.
void encode(const Changeset& changes, Bytes& out);
Result<Changeset> decode_changes(ByteView bytes);

}  // namespace pando::zone
