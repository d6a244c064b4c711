// Any octets as the messages of an AXFR or IXFR response: never a crash, and what was taken is a
// zone that can be built or differences that can be applied one after the other, or not, with an
// error.
//
// Input: one octet of mode, then messages, each behind its length in two octets as on TCP.

#include "manager/secondary/transfer/transfer_parser.h"
#include "tests/fuzz/served_zone.h"
#include "zone/builder/zone_builder.h"

namespace {

using namespace pando;
using namespace pando::manager;

constexpr std::uint16_t kId = 0x1234;
constexpr std::uint8_t kIncremental = 1;
constexpr std::uint8_t kRepairHeader = 2;  // else most inputs would end at a wrong ID
constexpr std::uint8_t kCompare = 4;       // a whole zone is compared with the served one

const char* const kZone = R"($TTL 300
@ SOA ns1 admin 7 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
web A 192.0.2.80
)";

/// The next message of the stream, taken off its front; empty at the end.
Bytes next_message(ByteView& stream) {
  if (stream.size() < 2) return {};
  const std::size_t size = std::min<std::size_t>(load_be16(stream.data()), stream.size() - 2);
  Bytes message(stream.begin() + 2, stream.begin() + 2 + static_cast<std::ptrdiff_t>(size));
  stream = stream.subspan(2 + size);
  return message;
}

void repair(Bytes& message) {
  if (message.size() < dns::kHeaderOctets) return;
  store_be16(message.data(), kId);
  message[2] = 0x84;
  message[3] = 0;
}

/// Differences in their order; the first that does not fit ends it, as it does in the manager.
void apply_in_turn(fuzz::ServedZone& served, const std::vector<zone::Changeset>& differences) {
  shm::Transaction transaction = served.store().begin_private();
  const auto current = served.store().current();
  zone::Draft draft(transaction, current.root, current.number + 1);
  for (const zone::Changeset& changes : differences) {
    const auto applied = draft.apply(changes, zone::DataLimits{});
    PANDO_ASSERT(applied || applied.error().code != Errc::kCorrupt);
    if (!applied) return;
  }
  PANDO_ASSERT(draft.view().zone_at(served.apex()).soa().count() == 1);
}

void build(fuzz::ServedZone& served, zone::ZoneBuilder& builder, shm::Transaction& transaction) {
  const auto built = builder.finish();
  PANDO_ASSERT(built || built.error().code != Errc::kCorrupt);
  if (!built) return;
  const auto current = served.store().current();
  zone::Draft draft(transaction, current.root, current.number + 1);
  PANDO_ASSERT(draft.put_zone(served.apex(), **built, {}));
  PANDO_ASSERT(draft.view().zone_at(served.apex()).soa().count() == 1);
}

/// What was compared is a difference that can be applied if, and only if, the zone can be built.
void compare(fuzz::ServedZone& served, ReceivedZone& received) {
  const auto soa = received.comparison()->finish();
  auto difference = std::optional<zone::Changeset>();
  if (soa) {
    auto found = received.comparison()->changeset([](std::uint64_t) { return UINT64_MAX; });
    PANDO_ASSERT(found || found.error().code != Errc::kCorrupt);
    if (found) difference = std::move(*found);
  }
  PANDO_ASSERT(received.build_instead());
  PANDO_ASSERT(received.builder().finish().has_value() == difference.has_value());
  if (difference) apply_in_turn(served, {std::move(*difference)});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::ServedZone* const served = new fuzz::ServedZone(kZone);
  static const bool unlinked = ::unlink(served->path().c_str()) == 0;
  PANDO_ASSERT(unlinked);
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  ByteView stream(data + 1, size - 1);
  const bool incremental = (mode & kIncremental) != 0;
  TransferLimits limits;
  limits.data = zone::DataLimits{};
  limits.octets = std::uint64_t{1} << 20;
  shm::Transaction transaction = served->store().begin_private();
  TransferParser parser(served->apex(), incremental ? dns::RRType::kIXFR : dns::RRType::kAXFR,
                        dns::Serial{7}, kId, limits, transaction);
  const zone::ZoneView live = served->zone();
  if ((mode & kCompare) != 0) parser.received_zone().wait();
  for (;;) {
    Bytes message = next_message(stream);
    if (message.empty()) return 0;
    if ((mode & kRepairHeader) != 0) repair(message);
    const auto done = parser.feed(message);
    if (!done) return 0;
    if (parser.received_zone().waits() && !parser.received_zone().resume(&live)) return 0;
    if (*done) break;
  }
  using Content = TransferParser::Content;
  if (parser.content() == Content::kChangesets) apply_in_turn(*served, parser.changesets());
  if (parser.content() != Content::kZone) return 0;
  if (parser.received_zone().comparison() != nullptr)
    compare(*served, parser.received_zone());
  else
    build(*served, parser.received_zone().builder(), transaction);
  return 0;
}
