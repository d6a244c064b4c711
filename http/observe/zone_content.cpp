#include "http/observe/zone_content.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/bytes.h"
#include "dns/rdata/rdata.h"
#include "http/observe/consistent.h"
#include "shm/side_table.h"
#include "zone/read/store_view.h"
#include "zone/settings/compiled_settings.h"

namespace pando::http {

namespace {

/// Names read between two checks of the version, and bytes after which a step ends.
constexpr int kNamesPerLook = 64;
constexpr std::size_t kBytesPerLook = std::size_t{1} << 20;
/// Bytes of one name above which nothing more is copied: garbage may look like gigabytes.
constexpr std::size_t kMaxBytesOfName = std::size_t{64} << 20;
/// Attempts at a zone that changes meanwhile.
constexpr int kAttempts = 20;

/// An RRset as it was copied from a version that may be over.
struct RawSet {
  Bytes owner;
  dns::RRType type{};
  std::uint32_t ttl = 0;
  std::vector<Bytes> rdatas;
};

using Place = ContentPlace;
using Phase = ContentPlace::Phase;

struct Step {
  bool found = false;
  bool loaded = false;
  std::uint32_t serial = 0;
  std::uint64_t data_version = 0;
  bool has_denial = false;
  bool too_large = false;
  std::uint64_t last_check = 0;
  Bytes apex;  ///< as the zone spells it
  Bytes settings;
  std::vector<RawSet> sets;
  Phase phase = Phase::kApex;  ///< of the next step
  Bytes last;                  ///< name after which it reads
};

Bytes octets_of(const dns::Name& name) {
  const ByteView octets = dns::NameView(name).bytes();
  return {octets.begin(), octets.end()};
}

std::string name_text(const Bytes& octets) {
  return to_text(dns::NameView(octets.data(), octets.size()));
}

/// Returns the bytes of the copy; it is incomplete above kMaxBytesOfName.
std::size_t copy_sets(const zone::RecordView& record, const dns::Name& owner,
                      std::vector<RawSet>& sets) {
  std::size_t bytes = 0;
  record.for_each_rrset([&](const zone::RRsetView& rrset) {
    const Bytes name = octets_of(owner);
    RawSet set{name, rrset.type(), rrset.ttl().seconds, {}};
    RawSet signatures{name, dns::RRType::kRRSIG, rrset.ttl().seconds, {}};
    rrset.for_each_rdata([&](ByteView rdata) {
      bytes += rdata.size() + 1;
      if (bytes <= kMaxBytesOfName) set.rdatas.emplace_back(rdata.begin(), rdata.end());
    });
    rrset.for_each_signature([&](ByteView rest) {
      bytes += rest.size() + 1;
      if (bytes > kMaxBytesOfName) return;
      Bytes rdata;
      append_be16(rdata, static_cast<std::uint16_t>(rrset.type()));
      append(rdata, rest);
      signatures.rdatas.push_back(std::move(rdata));
    });
    if (!set.rdatas.empty()) sets.push_back(std::move(set));
    if (!signatures.rdatas.empty()) sets.push_back(std::move(signatures));
  });
  return bytes;
}

zone::RecordView next_record(const zone::ZoneView& zone, const Place& place) {
  if (place.phase == Phase::kApex) return zone.apex_record();
  const auto tree = place.phase == Phase::kNames ? zone::ZoneView::Tree::kNames
                                                 : zone::ZoneView::Tree::kNsec3;
  return zone.record_after(tree, place.after);
}

Step read_step(const zone::StoreView& view, const shm::Window& window, const dns::Name& apex,
               Place place) {
  Step step;
  const zone::ZoneView zone = view.zone_at(apex);
  step.found = static_cast<bool>(zone);
  step.loaded = step.found && zone.loaded();
  if (!step.loaded) return step;
  step.serial = zone.serial().value;
  step.data_version = zone.data_version();
  step.has_denial = zone.denial() != zone::Denial::kUnsigned;
  const dns::Name own_apex = zone.owner_of(zone.apex_record());
  step.apex = octets_of(own_apex);
  const ByteView settings = zone.settings_bytes();
  step.settings.assign(settings.begin(), settings.end());
  if (const auto* side = shm::known_side(window, zone.side_index()))
    step.last_check = side->last_ok.load(std::memory_order_relaxed);
  std::size_t bytes = 0;
  for (int i = 0; i < kNamesPerLook && bytes < kBytesPerLook; ++i) {
    const zone::RecordView record = next_record(zone, place);
    if (!record || place.phase == Phase::kApex) {
      if (record) bytes += copy_sets(record, own_apex, step.sets);
      place = {static_cast<Phase>(static_cast<int>(place.phase) + 1), apex};
      if (place.phase == Phase::kEnd) break;
      continue;
    }
    place.after = zone.owner_of(record);
    // Of a version that is over the owner may be no name, and the search after it needs one.
    const ByteView owner = dns::NameView(place.after).bytes();
    if (dns::wire_name_length(owner) != owner.size()) break;
    bytes += copy_sets(record, place.after, step.sets);
  }
  step.too_large = bytes > kMaxBytesOfName;
  step.phase = place.phase;
  step.last = octets_of(place.after);
  return step;
}

RRsetText text_of(const RawSet& set) {
  RRsetText text;
  text.owner = name_text(set.owner);
  text.type = set.type;
  text.ttl = set.ttl;
  for (const Bytes& rdata : set.rdatas)
    text.records.push_back(dns::rdata_to_text(set.type, rdata));
  return text;
}

std::size_t bytes_of(const RRsetText& set) {
  constexpr std::size_t kPerSet = 200;
  std::size_t bytes = set.owner.size() + kPerSet;
  for (const std::string& record : set.records) bytes += record.size() + kPerSet;
  return bytes;
}

/// Signatures of one owner are one RRset, whatever they cover.
void add_set(ZoneContent& content, RRsetText&& set) {
  // Sets of one owner stand together, so the search is short.
  for (auto at = content.rrsets.rbegin();
       at != content.rrsets.rend() && at->owner == set.owner; ++at) {
    if (at->type != set.type) continue;
    for (std::string& record : set.records) at->records.push_back(std::move(record));
    return;
  }
  content.rrsets.push_back(std::move(set));
}

/// One step, consistent in itself.
Result<Step> read_good_step(const shm::Observer& observer, const dns::Name& apex,
                            const Place& place) {
  auto step =
      read_consistently(observer, [&](const zone::StoreView& view, const shm::Window& window) {
        return read_step(view, window, apex, place);
      });
  if (!step) return step;
  if (!step->found) return fail(Errc::kNotFound, "no zone {}", to_text(apex));
  if (!step->loaded) return fail(Errc::kUnsupported, "zone {} has no data", to_text(apex));
  if (step->too_large) return fail(Errc::kFull, "a name of {} is too large", to_text(apex));
  return step;
}

Place place_behind(const Step& step) {
  return {step.phase, dns::Name(dns::NameView(step.last.data(), step.last.size()))};
}

void take_head(ZoneContent& content, const Step& step) {
  content = {};
  content.apex = name_text(step.apex);
  content.serial = step.serial;
  content.has_denial = step.has_denial;
  content.last_check = step.last_check;
  const auto settings = zone::decode_zone_settings(step.settings);
  content.secondary = settings && settings->is_secondary;
}

/// One attempt; nothing when the zone changed meanwhile.
Result<std::optional<ZoneContent>> try_read(const shm::Observer& observer, const dns::Name& apex,
                                            std::size_t most_bytes) {
  ZoneContent content;
  std::uint64_t data_version = 0;
  std::size_t bytes = 0;
  for (Place place; place.phase != Phase::kEnd;) {
    auto step = read_good_step(observer, apex, place);
    if (!step) return pass(step);
    if (content.apex.empty()) {
      take_head(content, *step);
      data_version = step->data_version;
    }
    if (step->data_version != data_version) return std::optional<ZoneContent>();
    for (const RawSet& set : step->sets) {
      RRsetText text = text_of(set);
      bytes += bytes_of(text);
      if (bytes > most_bytes)
        return fail(Errc::kFull, "zone {} is larger than {} bytes", to_text(apex), most_bytes);
      add_set(content, std::move(text));
    }
    place = place_behind(*step);
  }
  return std::optional(std::move(content));
}

}  // namespace

Result<ZoneContent> read_zone(const shm::Observer& observer, const dns::Name& apex,
                              std::size_t most_bytes) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto content = try_read(observer, apex, most_bytes);
    if (!content) return pass(content);
    if (*content) return **std::move(content);
  }
  return fail(Errc::kFull, "zone {} changes too quickly to be read", to_text(apex));
}

Result<ContentPart> read_zone_part(const shm::Observer& observer, const dns::Name& apex,
                                   const ContentPlace& place) {
  const auto step = read_good_step(observer, apex, place);
  if (!step) return tl::unexpected<Error>(step.error());
  ContentPart part;
  part.apex = name_text(step->apex);
  for (const RawSet& set : step->sets) part.rrsets.push_back(text_of(set));
  part.next = place_behind(*step);
  return part;
}

}  // namespace pando::http
