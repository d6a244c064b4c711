#include "zone/builder/name_stream.h"

#include <algorithm>

#include "zone/builder/late_merge.h"

namespace pando::zone {

namespace {

/// With fewer late records than one per this many leaves, the trie is changed rather than rebuilt.
/// A change replaces some 100 bytes of old branches, a new trie takes about 10 for each leaf.
constexpr std::uint64_t kLeavesPerLate = 8;
/// This many names in order are no coincidence. Files often begin with the apex and the name
/// servers, and are sorted from there on. So the first name written must not be a name server that
/// sorts last.
constexpr unsigned kNamesInOrder = 16;

}  // namespace

Status NameStream::add(ByteView labels, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
  record_.clear();
  append_record(record_, type, ttl, rdata);
  return streams_ ? stream(labels, record_) : wait(labels);
}

/// Collects the current record, until enough consecutive names have come in order.
Status NameStream::wait(ByteView labels) {
  if (late_.ends_with(labels)) return late_.add_to_last(record_);
  other_key().assign(labels);
  const int order = late_.size() == 0 ? 1 : other_key().compare(last_key());
  if (order < 0) {
    names_in_order_ = 0;
    in_order_from_ = late_.size();
  }
  if (order != 0) ++names_in_order_;
  swap_keys();
  if (auto added = late_.add(labels, last_key(), record_); !added) return added;
  return names_in_order_ == kNamesInOrder ? begin() : Status{};
}

/// Writes the names that came in order as the first ones; earlier names are late.
Status NameStream::begin() {
  streams_ = true;
  late_.mark();
  for (const LateRecords::Entry& entry : late_.take_from(in_order_from_))
    if (auto added = stream(late_.labels(entry), late_.record(entry).octets()); !added)
      return added;
  return {};
}

Status NameStream::stream(ByteView labels, ByteView record) {
  if (is_open_ && same_octets(labels, labels_)) {
    append(records_, record);
    return {};
  }
  // A record after a late record is mostly of the same name.
  if (late_.ends_with(labels)) return late_.add_to_last(record);
  other_key().assign(labels);
  const int order = is_open_ ? other_key().compare(last_key()) : 1;
  if (order < 0) return late_.add(labels, other_key(), record);
  if (order > 0) {
    if (auto closed = close(); !closed) return closed;
    open(labels);
  }
  append(records_, record);
  return {};
}

void NameStream::open(ByteView labels) {
  labels_.assign(labels.begin(), labels.end());
  records_.clear();
  swap_keys();
  is_open_ = true;
}

template <class Visit>
Status NameStream::for_each_open(Visit&& visit) const {
  for (std::size_t at = 0; at < records_.size();) {
    const CollectedRecord record(records_.data() + at);
    if (auto visited = visit(record); !visited) return visited;
    at += record.octets().size();
  }
  return {};
}

/// Writes the open name and puts it into the trie.
Status NameStream::close() {
  if (!is_open_) return {};
  writer_.begin(labels_);
  auto added = for_each_open([&](const CollectedRecord& record) -> Status {
    writer_.add(record);
    return {};
  });
  if (!added) return added;
  if (!writer_.check()) return put_off();
  auto ref = writer_.write();
  if (!ref && ref.error().code == Errc::kInvalid) return put_off();
  if (!ref) return pass(ref);
  if (labels_.empty()) {
    apex_ = *ref;
    return {};
  }
  ++leaves_;
  return trie_.add(*ref, {last_key().data(), last_key().length()});
}

/// Defers the checks of the open name to the end, when late records are known.
Status NameStream::put_off() {
  return for_each_open([&](const CollectedRecord& record) {
    return late_.add(labels_, last_key(), record.octets());
  });
}

Result<std::uint32_t> NameStream::finish() {
  if (auto closed = close(); !closed) return pass(closed);
  auto root = trie_.finish();
  if (!root || late_.size() == 0) return root;
  if (auto sorted = late_.sort(); !sorted) return pass(sorted);
  LateMerge merge(writer_, transaction_, late_, *root, apex_);
  return late_.size() * kLeavesPerLate < leaves_ ? merge.put_each() : merge.rebuild(leaves_);
}

}  // namespace pando::zone
