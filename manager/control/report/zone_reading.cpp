#include "manager/control/report/zone_reading.h"

#include <charconv>
#include <vector>

#include "dns/rdata/rdata.h"
#include "zone/history/history.h"

namespace pando::manager {

namespace {

using dns::RRType;
using zone::RecordView;
using zone::RRsetView;
using zone::ZoneView;
using Tree = ZoneView::Tree;

ipc::RecordRow row_of(const std::string& owner, RRType type, dns::Ttl ttl, ByteView rdata) {
  return {owner, ttl.seconds, to_text(type), dns::rdata_to_text(type, rdata)};
}

std::size_t bytes_of(const ipc::RecordRow& row) noexcept {
  constexpr std::size_t kMemberNames = 64;
  return row.owner.size() + row.type.size() + row.rdata.size() + kMemberNames;
}

/// Takes a number off the front of `text`, with the blank after it.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

Error bad_place() { return {Errc::kInvalid, "'after' is no place that an earlier page gave"}; }

/// The place where a page begins or ends: a name in one of the zone's trees, and the number of its
/// rows that were given before. Text: "TREE ROWS NAME".
struct Place {
  Tree tree = Tree::kNames;
  std::uint64_t rows = 0;
  dns::Name name;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} {} {}", static_cast<unsigned>(tree), rows, to_text(name));
  }
  static Result<Place> from_text(std::string_view text, const ZoneView& zone) {
    Place place{Tree::kNames, 0, dns::Name(zone.apex())};
    if (text.empty()) return place;
    unsigned tree = 0;
    if (!take_number(text, tree) || tree > 1 || !take_number(text, place.rows))
      return pass(bad_place());
    auto name = dns::Name::from_text(text);
    if (!name || !name->view().is_at_or_below(zone.apex())) return pass(bad_place());
    place.tree = static_cast<Tree>(tree);
    place.name = *name;
    return place;
  }
};

/// Fills one page with the rows of one name after the other.
class RecordPage {
 public:
  RecordPage(const ReadFilter& filter, const PageLimits& limits)
      : filter_(filter), limits_(limits) {}

  /// Appends the name's rows after the first `skip`. Returns false when the page was full before
  /// all were in; place_rows() is the number of rows that were given by then.
  bool add(const RecordView& record, const dns::Name& owner, std::uint64_t skip) {
    owner_ = to_text(owner);
    skip_ = skip;
    at_ = 0;
    full_ = false;
    // RFC 1035 §5.2 demands no order, but people and some tools expect the SOA first.
    add_set(record.find(RRType::kSOA));
    record.for_each_rrset([&](const RRsetView& set) {
      if (set.type() != RRType::kSOA) add_set(set);
    });
    return !full_;
  }
  [[nodiscard]] std::uint64_t place_rows() const noexcept { return at_; }
  [[nodiscard]] std::vector<ipc::RecordRow> take() { return std::move(rows_); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

 private:
  void add_set(const RRsetView& set) {
    if (!set) return;
    if (!filter_.type || *filter_.type == set.type())
      set.for_each_rdata([&](ByteView rdata) { add_row(set.type(), set.ttl(), rdata); });
    if (filter_.type && *filter_.type != RRType::kRRSIG) return;
    set.for_each_signature([&](ByteView rest) {
      Bytes rdata;
      append_be16(rdata, static_cast<std::uint16_t>(set.type()));
      append(rdata, rest);
      add_row(RRType::kRRSIG, set.ttl(), rdata);
    });
  }

  void add_row(RRType type, dns::Ttl ttl, ByteView rdata) {
    full_ = full_ || rows_.size() >= limits_.rows || bytes_ >= limits_.bytes;
    if (full_) return;
    if (at_++ < skip_) return;
    rows_.push_back(row_of(owner_, type, ttl, rdata));
    bytes_ += bytes_of(rows_.back());
  }

  const ReadFilter& filter_;
  const PageLimits& limits_;
  std::vector<ipc::RecordRow> rows_;
  std::size_t bytes_ = 0;
  std::string owner_;
  std::uint64_t skip_ = 0;
  std::uint64_t at_ = 0;  // rows of the present name so far, with those skipped
  bool full_ = false;
};

RecordView record_at(const ZoneView& zone, Tree tree, dns::NameView name) noexcept {
  return tree == Tree::kNames ? zone.record_at(name) : zone.nsec3_record_at(name);
}

/// Moves to the next name that has records, in the order apex, names, NSEC3 owners.
RecordView next_name(const ZoneView& zone, Place& place) {
  RecordView next = zone.record_after(place.tree, place.name);
  if (!next && place.tree == Tree::kNames) {
    place.tree = Tree::kNsec3;
    next = zone.record_after(Tree::kNsec3, zone.apex());
  }
  if (next) place.name = zone.owner_of(next);
  return next;
}

/// All of the zone, or all of it that has the filter's type.
std::string read_names(const ZoneView& zone, Place place, const PageLimits& limits,
                       RecordPage& page) {
  RecordView record = record_at(zone, place.tree, place.name);
  std::uint64_t skip = record ? place.rows : 0;
  for (std::size_t names = 0;; ++names) {
    if (record && !page.add(record, place.name, skip)) {
      place.rows = page.place_rows();
      return place.text();
    }
    // The name is done: `rows` beyond its number mean so in the next page.
    if (names >= limits.names) {
      place.rows = UINT64_MAX;
      return place.text();
    }
    skip = 0;
    record = next_name(zone, place);
    if (!record) return {};
  }
}

/// The records of one name, which may be in both trees.
Result<std::string> read_owner(const ZoneView& zone, Place place, const ReadFilter& filter,
                               RecordPage& page) {
  const bool first = place.rows == 0 && place.tree == Tree::kNames;
  for (;; place.tree = Tree::kNsec3, place.rows = 0) {
    const RecordView record = record_at(zone, place.tree, *filter.owner);
    if (record && !page.add(record, zone.owner_of(record), place.rows)) {
      place.rows = page.place_rows();
      place.name = *filter.owner;
      return place.text();
    }
    if (place.tree == Tree::kNsec3) break;
  }
  if (first && page.empty())
    return fail(Errc::kNotFound, "{} has no {}{}", to_text(*filter.owner),
                filter.type ? to_text(*filter.type) + " " : std::string(), "record");
  return std::string();
}

/// Changesets are counted from serial to serial.
class HistoryCounts {
 public:
  explicit HistoryCounts(std::vector<ipc::ChangesetRow>& rows) : rows_(rows) {}
  void take(const zone::HistoryReader& reader, const zone::HistoryRecord& record) {
    if (rows_.empty() || rows_.back().from != reader.from().value) rows_.push_back(row_of(reader));
    if (record.type == RRType::kSOA) return;
    ++(record.added ? rows_.back().added : rows_.back().removed);
  }

 private:
  static ipc::ChangesetRow row_of(const zone::HistoryReader& reader) {
    zone::Author author = reader.author();
    return {reader.from().value,    reader.to().value,       0, 0,
            std::move(author.name), std::move(author.client)};
  }

  std::vector<ipc::ChangesetRow>& rows_;
};

}  // namespace

Result<ipc::ZoneReadResult> read_page(const ZoneView& zone, const ReadFilter& filter,
                                      const std::string& after, const PageLimits& limits) {
  auto place = Place::from_text(after, zone);
  if (!place) return pass(place);
  ipc::ZoneReadResult result;
  result.zone = to_text(zone.apex());
  result.serial = zone.serial().value;
  RecordPage page(filter, limits);
  if (filter.owner) {
    auto next = read_owner(zone, *place, filter, page);
    if (!next) return pass(next);
    result.next = std::move(*next);
  } else {
    result.next = read_names(zone, *place, limits, page);
  }
  result.records = page.take();
  return result;
}

Result<ipc::ZoneDiffResult> diff_page(const zone::Changeset& changes, dns::Serial from,
                                      dns::Serial to, const std::string& after,
                                      const PageLimits& limits) {
  std::string_view text = after;
  std::size_t at = 0;
  const std::size_t end = changes.removed.size() + changes.added.size();
  if (!text.empty() && (!take_number(text, at) || !text.empty() || at > end))
    return pass(bad_place());
  ipc::ZoneDiffResult result{to_text(changes.zone), from.value, to.value};
  std::size_t rows = 0;
  for (std::size_t bytes = 0; at < end && rows < limits.rows && bytes < limits.bytes; ++at) {
    const bool removed = at < changes.removed.size();
    const zone::Record& record =
        removed ? changes.removed[at] : changes.added[at - changes.removed.size()];
    auto& list = removed ? result.removed : result.added;
    list.push_back(row_of(to_text(record.owner.view()), record.type, record.ttl, record.rdata));
    bytes += bytes_of(list.back());
    ++rows;
  }
  if (at < end) result.next = std::to_string(at);
  return result;
}

Result<ipc::ZoneHistoryResult> history_page(const ZoneView& zone, const std::string& after,
                                            const PageLimits& limits) {
  ipc::ZoneHistoryResult result{to_text(zone.apex()), zone.serial().value};
  std::string_view text = after;
  std::uint32_t serial = 0;
  if (!text.empty() && (!take_number(text, serial) || !text.empty())) return pass(bad_place());
  auto reader = after.empty() ? zone::HistoryReader::from_oldest(zone)
                              : zone::HistoryReader::from(zone, {serial});
  // The part of the history that a next page begins with may be gone by then.
  if (!reader) return result;
  HistoryCounts counts(result.changesets);
  std::uint64_t records = 0;
  while (const zone::HistoryRecord* record = reader->next()) {
    const bool begins = result.changesets.empty() ||
                        result.changesets.back().from != reader->from().value;
    if (begins && (result.changesets.size() >= limits.rows || records >= limits.changed)) {
      result.next = std::to_string(reader->from().value);
      return result;
    }
    counts.take(*reader, *record);
    ++records;
  }
  if (reader->damaged())
    return fail(Errc::kCorrupt, "the change history of {} is damaged", result.zone);
  return result;
}

}  // namespace pando::manager
