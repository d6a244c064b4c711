#include "dns/message/message_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pando::dns {

namespace {

constexpr std::uint16_t kPointerBits = 0xC000;  // RFC 1035 §4.1.4
constexpr std::size_t kMaxPointerOffset = 0x3FFF;
constexpr std::size_t kFixedOctets = 10;  // TYPE, CLASS, TTL, RDLENGTH
constexpr detail::CompressibleNames kNoNames = {0, 0};

/// A pointer to `offset`; 0 when no pointer reaches that far.
std::uint16_t pointer_to(std::size_t offset) noexcept {
  return offset > kMaxPointerOffset ? 0 : static_cast<std::uint16_t>(kPointerBits | offset);
}

/// dns::copy_octets() for RDATA as well, which may be long.
void copy_data(std::uint8_t* out, ByteView octets) noexcept {
  constexpr std::size_t kLong = 32;
  if (octets.size() > kLong)
    std::memcpy(out, octets.data(), octets.size());
  else
    dns::copy_octets(out, octets.data(), octets.size());
}

/// Writes the pointers of the records at `start`, each plus `shift`.
void put_pointers(std::uint8_t* start, const PointersInRecords& pointers,
                  std::uint16_t shift) noexcept {
  using Eight = std::uint16_t __attribute__((vector_size(16)));
  constexpr std::size_t kTogether = 8;
  const std::size_t count = pointers.places.size();
  const std::uint16_t* const places = pointers.places.data();
  std::size_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    Eight values;
    std::memcpy(&values, pointers.values + i, sizeof values);
    values += shift;
    if constexpr (std::endian::native == std::endian::little) values = values << 8 | values >> 8;
#pragma GCC unroll 8
    for (std::size_t at = 0; at < kTogether; ++at) {
      const std::uint16_t value = values[at];
      std::memcpy(start + places[i + at], &value, sizeof value);
    }
  }
  for (; i < count; ++i)
    store_be16(start + places[i], static_cast<std::uint16_t>(pointers.values[i] + shift));
}

/// Result of searching a name in the message.
struct NameSearch {
  struct NewName {
    std::uint16_t hash;
    std::uint8_t at;  // in the name searched
  };
  std::array<NewName, kMaxLabels> fresh;  // name and ancestors that the message lacks
  std::size_t fresh_count = 0;
  std::size_t literal = 0;       // octets of labels that have to be written
  CompressionTable::Place rest;  // place of the remaining name; offset 0 = the root
};

/// Searches the name, then each ancestor, until one is found or the rest is reached. Labels are
/// never put in front of a name that already ends with the most pointers allowed.
template <NameCase kCase>
inline void search_name(const CompressionTable& table, ByteView message, NameView name,
                        std::size_t rest_octets, NameSearch& search) noexcept {
  const std::uint8_t* p = name.data();
  const std::uint8_t* const end = p + name.size();
  const std::uint8_t* const rest = end - rest_octets;
  for (; p < rest; p += *p + 1U) {
    const NameView suffix(p, static_cast<std::size_t>(end - p));
    const std::uint16_t hash = compression_hash(suffix);
    const CompressionTable::Place found = table.find<kCase>(message, hash, suffix);
    if (found.offset == 0) {
      search.fresh[search.fresh_count++] = {hash, static_cast<std::uint8_t>(p - name.data())};
    } else if (p == name.data() || found.pointers < kMaxChainedPointers) {
      search.rest = found;
      break;
    }
  }
  search.literal = static_cast<std::size_t>(p - name.data());
}

/// Enters the names that a search missed; the caller writes them at `offset` next.
inline void enter_names(CompressionTable& table, std::size_t offset,
                        const NameSearch& search) noexcept {
  const unsigned pointers = search.rest.offset == 0 ? 0 : search.rest.pointers + 1;
  for (std::size_t i = 0; i < search.fresh_count; ++i)
    table.enter(search.fresh[i].hash, offset + search.fresh[i].at, pointers);
}

}  // namespace

MessageWriter::MessageWriter(std::span<std::uint8_t> space, std::size_t limit) noexcept
    : space_(space),
      limit_(static_cast<std::ptrdiff_t>(std::min({limit, space.size(), kMaxMessageOctets}))) {}

bool MessageWriter::put_question(NameView name, RRType type, RRClass rr_class) noexcept {
  const Mark start = mark();
  const bool first = size_ == kHeaderOctets;
  NamePlace place;
  if (!(first ? put_octets(name.bytes()) : put_name(name, place)) || !fits(4)) {
    roll_back(start);
    return false;
  }
  if (first) {
    question_size_ = static_cast<std::uint16_t>(name.size());
    counts_ = {1};  // all at once: mark() is mostly next, and reads all of them
  } else {
    ++counts_[0];
  }
  store_be16(space_.data() + size_, static_cast<std::uint16_t>(type));
  store_be16(space_.data() + size_ + 2, static_cast<std::uint16_t>(rr_class));
  size_ += 4;
  return true;
}

void MessageWriter::roll_back(const Mark& mark) noexcept {
  if (table_ready_ && size_ != mark.size) table_.forget_from(mark.size);
  if (mark.size == kHeaderOctets) {  // the next question will replace this one
    question_size_ = 0;
    table_ready_ = false;
  }
  size_ = mark.size;
  counts_ = mark.counts;
}

bool MessageWriter::put_record(Section section, NameView owner, RRType type, RRClass rr_class,
                               std::uint32_t ttl, ByteView rdata, ByteView prefix) noexcept {
  const Mark start = mark();
  const RRsetHead head{
      .owner = owner, .type = type, .rr_class = rr_class, .ttl = Ttl{ttl}, .prefix = prefix};
  Record record(*this, section, head);
  if (append_record(record, rdata)) return true;
  roll_back(start);
  return false;
}

bool MessageWriter::put_raw_additional(ByteView record) noexcept {
  std::uint16_t& count = counts_[1 + static_cast<std::size_t>(Section::kAdditional)];
  if (count == 0xFFFF || !put_octets(record)) return false;
  ++count;
  return true;
}

bool MessageWriter::put_rendered(ByteView records, const SectionCounts& counts) noexcept {
  if (!put_octets(records)) return false;
  counts_[1] = static_cast<std::uint16_t>(counts_[1] + counts.answer);
  counts_[2] = static_cast<std::uint16_t>(counts_[2] + counts.authority);
  counts_[3] = static_cast<std::uint16_t>(counts_[3] + counts.additional);
  return true;
}

bool MessageWriter::put_sections(ByteView records, const PointersInRecords& pointers,
                                 std::size_t shift, std::uint16_t authority,
                                 std::uint16_t additional) noexcept {
  std::uint8_t* const start = space_.data() + size_;
  if (!put_octets(records)) return false;
  put_pointers(start, pointers.within(records.size()), static_cast<std::uint16_t>(shift));
  counts_[2] = static_cast<std::uint16_t>(counts_[2] + authority);
  counts_[3] = static_cast<std::uint16_t>(counts_[3] + additional);
  return true;
}

bool MessageWriter::put_owned_records(ByteView records, std::span<const std::uint16_t> owners,
                                      NameView owner, const PointersInRecords& pointers,
                                      std::size_t shift) noexcept {
  std::uint8_t* const start = space_.data() + size_;
  if (!put_sections(records, pointers, shift, static_cast<std::uint16_t>(owners.size()), 0))
    return false;
  const auto place = static_cast<std::uint16_t>(owner.data() - space_.data());
  for (const std::uint16_t at : owners)
    store_be16(start + at, static_cast<std::uint16_t>(0xC000 | place));
  return true;
}

void MessageWriter::set_rcode(Rcode rcode) noexcept {
  space_[3] = static_cast<std::uint8_t>((space_[3] & 0xF0) | (static_cast<unsigned>(rcode) & 0x0F));
}

ByteView MessageWriter::finish() noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    store_be16(space_.data() + 4 + 2 * i, counts_[i]);
  return space_.first(size_);
}

/// Place of `name` when it is part of the question's name in the message. Addresses are compared as
/// numbers, since the two names are mostly unrelated objects.
inline NamePlace MessageWriter::place_in_question(NameView name) const noexcept {
  NamePlace place;
  const auto distance = reinterpret_cast<std::uintptr_t>(name.data()) -
                        reinterpret_cast<std::uintptr_t>(space_.data() + kHeaderOctets);
  if (distance < question_size_ && !name.is_root())
    place.pointer_ = pointer_to(kHeaderOctets + distance);
  return place;
}

MessageWriter::Record::Record(MessageWriter& writer, Section section, const RRsetHead& of) noexcept
    : head(of),
      count(&writer.counts_[1 + static_cast<std::size_t>(section)]),
      fixed(std::uint64_t{static_cast<std::uint16_t>(of.type)} << 48 |
            std::uint64_t{static_cast<std::uint16_t>(of.rr_class)} << 32 | of.ttl.seconds),
      names(of.prefix.empty() ? detail::compressible_names(of.type) : kNoNames),
      place(of.owner_place || !of.labels.empty() ? of.owner_place
                                                 : writer.place_in_question(of.owner)) {}

/// The commonest case: a pointer, and RDATA without change.
bool MessageWriter::append_plain_record(Record& record, ByteView rdata) noexcept {
  const ByteView prefix = record.head.prefix;
  const std::size_t length = prefix.size() + rdata.size();
  if (!fits(2 + kFixedOctets + length) || *record.count == 0xFFFF) return false;
  std::uint8_t* out = space_.data() + size_;
  store_be16(out, record.place.pointer_);
  store_be64(out + 2, record.fixed);
  store_be16(out + 10, static_cast<std::uint16_t>(length));
  if (!prefix.empty()) std::memcpy(out + 12, prefix.data(), prefix.size());
  copy_data(out + 12 + prefix.size(), rdata);
  size_ += 2 + kFixedOctets + length;
  ++*record.count;
  return true;
}

bool MessageWriter::append_searched_record(Record& record, ByteView rdata) noexcept {
  if (!put_owner(record) || !fits(kFixedOctets) || *record.count == 0xFFFF) return false;
  std::uint8_t* fixed = space_.data() + size_;
  store_be64(fixed, record.fixed);
  size_ += kFixedOctets;
  const std::size_t rdata_at = size_;
  const bool rdata_fitted = record.names.names == 0
                                ? put_octets(record.head.prefix) && put_octets(rdata)
                                : put_rdata_names(record, rdata);
  if (!rdata_fitted) return false;
  store_be16(fixed + 8, static_cast<std::uint16_t>(size_ - rdata_at));
  ++*record.count;
  return true;
}

bool MessageWriter::put_pointing_rrset(Section section, RRsetHead& head,
                                       std::span<const NamePlace> targets) noexcept {
  constexpr std::size_t kOctets = 2 + kFixedOctets + 2;  // of a record that is pointers alone
  const Mark start = mark();
  Record record(*this, section, head);
  if (targets.empty()) return true;
  // The first owner may be more than a pointer.
  const bool owner_fitted = put_owner(record);
  const bool has_place = record.place || targets.size() == 1;  // none after a pointer's reach
  if (!owner_fitted || !has_place || *record.count + targets.size() > 0xFFFF ||
      !fits(kOctets * targets.size() - 2)) {
    roll_back(start);
    return false;
  }
  std::uint8_t* out = space_.data() + size_;
  for (const NamePlace& target : targets) {
    if (&target != targets.data()) {
      store_be16(out, record.place.pointer_);
      out += 2;
    }
    store_be64(out, record.fixed);
    store_be16(out + 8, 2);
    store_be16(out + kFixedOctets, target.pointer_);
    out += kFixedOctets + 2;
  }
  size_ += kOctets * targets.size() - 2;
  *record.count = static_cast<std::uint16_t>(*record.count + targets.size());
  head.owner_place = record.place;
  return true;
}

/// Writes the owner, which then has a place.
bool MessageWriter::put_owner(Record& record) noexcept {
  if (record.place) return put_pointer(record.place.pointer_);
  const RRsetHead& head = record.head;
  if (head.labels.empty()) return put_name(head.owner, record.place, head.rest, head.rest_octets);
  const std::uint16_t rest = place_in_question(head.owner).pointer_;  // 0 = the root
  if (!fits(head.labels.size() + 2)) return false;
  record.place.pointer_ = pointer_to(size_);
  copy_data(space_.data() + size_, head.labels);
  size_ += head.labels.size();
  if (rest != 0) return put_pointer(rest);
  space_[size_++] = 0;
  return true;
}

/// Writes RDATA with names that may be compressed.
bool MessageWriter::put_rdata_names(Record& record, ByteView rdata) noexcept {
  record.target = NamePlace();
  if (record.names.prefix == 0 && is_wire_name(rdata))  // NS, CNAME, PTR: nothing but a name
    return put_name(NameView(rdata.data(), rdata.size()), record.target);
  bool fitted = true;
  for_each_compressible_field(record.names, rdata, [&](ByteView field, bool is_name) {
    record.target = NamePlace();
    fitted = fitted && (is_name ? put_name(NameView(field.data(), field.size()), record.target)
                                : put_octets(field));
  });
  return fitted;
}

bool MessageWriter::put_octets(ByteView octets) noexcept {
  if (!fits(octets.size())) return false;
  copy_data(space_.data() + size_, octets);
  size_ += octets.size();
  return true;
}

bool MessageWriter::put_pointer(std::uint16_t pointer) noexcept {
  if (!fits(2)) return false;
  store_be16(space_.data() + size_, pointer);
  size_ += 2;
  return true;
}

/// Writes a name and stores its place in `place`. The search ends at the last `rest_octets` octets,
/// which are at `rest` (the root, when unset).
bool MessageWriter::put_name(NameView name, NamePlace& place, NamePlace rest,
                             std::size_t rest_octets) noexcept {
  if (name.is_root()) return put_octets(name.bytes());
  if (!table_ready_) prepare_table();
  const bool ignored = name_case_ == NameCase::kIgnored;
  const std::size_t label = name.data()[0] + 1U;
  if (rest && label + rest_octets == name.size() && label + 2 <= room())
    return ignored ? put_label<NameCase::kIgnored>(name, place, rest)
                   : put_label<NameCase::kKept>(name, place, rest);
  return ignored ? put_searched_name<NameCase::kIgnored>(name, place, rest, rest_octets)
                 : put_searched_name<NameCase::kKept>(name, place, rest, rest_octets);
}

/// put_name() of any name. Not inline: its search takes much of the stack.
template <NameCase kCase>
[[gnu::noinline]] bool MessageWriter::put_searched_name(NameView name, NamePlace& place,
                                                        NamePlace rest,
                                                        std::size_t rest_octets) noexcept {
  NameSearch search;
  search.rest = {static_cast<std::uint16_t>(rest.pointer_ & kMaxPointerOffset), rest.pointers_};
  search_name<kCase>(table_, space_.first(size_), name, rest_octets, search);
  if (search.literal == 0) {
    place.pointer_ = pointer_to(search.rest.offset);
    return put_pointer(place.pointer_);
  }
  const std::size_t octets = search.literal + (search.rest.offset == 0 ? 1 : 2);
  if (!fits(octets)) return false;
  enter_names(table_, size_, search);
  place.pointer_ = pointer_to(size_);
  std::uint8_t* const out = space_.data() + size_;
  copy_data(out, {name.data(), search.literal});
  if (search.rest.offset == 0)
    out[search.literal] = 0;
  else
    store_be16(out + search.literal, pointer_to(search.rest.offset));
  size_ += octets;
  return true;
}

/// put_name() of a label in front of `rest`, for which there is room.
template <NameCase kCase>
inline bool MessageWriter::put_label(NameView name, NamePlace& place, NamePlace rest) noexcept {
  const CompressionTable::Place found = table_.find_or_enter<kCase>(
      space_.first(size_), compression_hash(name), name, size_, rest.pointers_ + 1U);
  place.pointer_ = pointer_to(found.offset != 0 ? found.offset : size_);
  if (found.offset != 0) return put_pointer(place.pointer_);
  const std::size_t label = name.data()[0] + 1U;
  std::uint8_t* const out = space_.data() + size_;
  copy_data(out, {name.data(), label});
  store_be16(out + label, rest.pointer_);
  size_ += label + 2;
  return true;
}

NamePlace MessageWriter::place_of(NameView name) noexcept {
  NamePlace place;
  if (name.is_root()) return place;
  if (!table_ready_) prepare_table();
  const ByteView message = space_.first(size_);
  const std::uint16_t hash = compression_hash(name);
  const CompressionTable::Place found = name_case_ == NameCase::kIgnored
                                            ? table_.find<NameCase::kIgnored>(message, hash, name)
                                            : table_.find<NameCase::kKept>(message, hash, name);
  // Labels are put in front of it.
  if (found.offset == 0 || found.pointers >= kMaxChainedPointers) return place;
  place.pointer_ = pointer_to(found.offset);
  place.pointers_ = static_cast<std::uint8_t>(found.pointers);
  return place;
}

/// Prepares the table, which then has the question's name and all its ancestors.
void MessageWriter::prepare_table() noexcept {
  table_.clear(static_cast<std::size_t>(std::max<std::ptrdiff_t>(limit_, 0)));
  table_ready_ = true;
  for (NameView name = question_name(); !name.is_root(); name = name.parent())
    table_.enter(compression_hash(name), static_cast<std::size_t>(name.data() - space_.data()), 0);
}

}  // namespace pando::dns
