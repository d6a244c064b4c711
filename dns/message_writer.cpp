#include "dns/message_writer.h"

#include <algorithm>
#include <cstring>

#include "dns/rdata.h"

namespace pando::dns {

namespace {

constexpr std::uint16_t kPointerBits = 0xC000;  // RFC 1035 §4.1.4
constexpr std::size_t kMaxPointerOffset = 0x3FFF;

std::uint16_t pointer_to(std::size_t offset) noexcept {
  return static_cast<std::uint16_t>(kPointerBits | offset);
}

}  // namespace

/// How far a name is in the message already, and where its labels start.
struct MessageWriter::Suffix {
  std::array<std::uint8_t, kMaxLabels> labels;  // offsets in the name
  std::size_t new_labels;                       // that many first labels are not in the message
  std::uint16_t offset;                         // of what follows them; 0 = the root
  std::uint16_t slot;                           // free, for the last of the new labels
  std::uint64_t hash;  // of the name that starts with the last of the new labels
};

MessageWriter::MessageWriter(std::span<std::uint8_t> space, std::size_t limit) noexcept
    : space_(space), limit_(static_cast<std::ptrdiff_t>(std::min(limit, kMaxMessageOctets))) {}

void MessageWriter::put_header(const Header& header) noexcept {
  write_header(header, space_.data());
}

bool MessageWriter::put_question(NameView name, RRType type, RRClass rr_class) noexcept {
  const Mark start = mark();
  const bool first = size_ == kHeaderOctets;
  if (!(first ? put_octets(name.bytes()) : put_name(name)) || !fits(4)) {
    roll_back(start);
    return false;
  }
  if (first) question_size_ = static_cast<std::uint16_t>(name.size());
  store_be16(space_.data() + size_, static_cast<std::uint16_t>(type));
  store_be16(space_.data() + size_ + 2, static_cast<std::uint16_t>(rr_class));
  size_ += 4;
  ++counts_[0];
  return true;
}

void MessageWriter::roll_back(const Mark& mark) noexcept {
  if (table_ready_ && size_ != mark.size) table_.forget_from(mark.size);
  if (mark.size == kHeaderOctets) {  // the next question takes the place of this one
    question_size_ = 0;
    table_ready_ = false;
  }
  size_ = mark.size;
  counts_ = mark.counts;
}

bool MessageWriter::put_record(Section section, NameView owner, RRType type, RRClass rr_class,
                               std::uint32_t ttl, ByteView rdata, ByteView prefix) noexcept {
  const Mark start = mark();
  RecordHead head{owner, type, rr_class, ttl};
  if (append_record(section, head, rdata, prefix)) return true;
  roll_back(start);
  return false;
}

bool MessageWriter::put_raw_additional(ByteView record) noexcept {
  std::uint16_t& count = counts_[1 + static_cast<std::size_t>(Section::kAdditional)];
  if (count == 0xFFFF || !put_octets(record)) return false;
  ++count;
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

bool MessageWriter::append_record(Section section, RecordHead& head, ByteView rdata,
                                  ByteView prefix) noexcept {
  constexpr std::size_t kFixedOctets = 10;  // TYPE, CLASS, TTL, RDLENGTH
  std::uint16_t& count = counts_[1 + static_cast<std::size_t>(section)];
  if (count == 0xFFFF || !put_owner(head) || !fits(kFixedOctets)) return false;
  std::uint8_t* fixed = space_.data() + size_;
  store_be16(fixed, static_cast<std::uint16_t>(head.type));
  store_be16(fixed + 2, static_cast<std::uint16_t>(head.rr_class));
  store_be32(fixed + 4, head.ttl);
  size_ += kFixedOctets;
  const std::size_t rdata_at = size_;
  if (!put_rdata(head.type, rdata, prefix)) return false;
  store_be16(fixed + 8, static_cast<std::uint16_t>(size_ - rdata_at));
  ++count;
  return true;
}

bool MessageWriter::put_owner(RecordHead& head) noexcept {
  if (head.pointer != 0) return put_pointer(head.pointer);
  const std::size_t at = size_;
  if (!put_name(head.owner)) return false;
  if (space_[at] >= (kPointerBits >> 8))
    head.pointer = load_be16(space_.data() + at);
  else if (at <= kMaxPointerOffset && !head.owner.is_root())
    head.pointer = pointer_to(at);
  return true;
}

bool MessageWriter::put_rdata(RRType type, ByteView rdata, ByteView prefix) noexcept {
  if (!prefix.empty()) return put_octets(prefix) && put_octets(rdata);
  bool fitted = true;
  for_each_compressible_field(type, rdata, [&](ByteView field, bool is_name) {
    fitted =
        fitted && (is_name ? put_name(NameView(field.data(), field.size())) : put_octets(field));
  });
  return fitted;
}

bool MessageWriter::put_octets(ByteView octets) noexcept {
  if (!fits(octets.size())) return false;
  if (!octets.empty()) std::memcpy(space_.data() + size_, octets.data(), octets.size());
  size_ += octets.size();
  return true;
}

bool MessageWriter::put_pointer(std::uint16_t pointer) noexcept {
  if (!fits(2)) return false;
  store_be16(space_.data() + size_, pointer);
  size_ += 2;
  return true;
}

bool MessageWriter::put_name(NameView name) noexcept {
  if (name.is_root()) return put_octets(name.bytes());
  if (const std::uint16_t pointer = question_pointer(name); pointer != 0)
    return put_pointer(pointer);
  if (!table_ready_) prepare_table();

  const Suffix suffix = longest_suffix(name);
  if (suffix.new_labels == 0) return put_pointer(pointer_to(suffix.offset));
  const std::uint8_t* last = name.data() + suffix.labels[suffix.new_labels - 1];
  const auto literal = static_cast<std::size_t>(last + *last + 1 - name.data());
  if (!fits(literal + (suffix.offset == 0 ? 1 : 2))) return false;
  std::memcpy(space_.data() + size_, name.data(), literal);
  if (suffix.offset == 0)
    space_[size_ + literal] = 0;
  else
    store_be16(space_.data() + size_ + literal, pointer_to(suffix.offset));
  enter_new_names(suffix, name);
  size_ += literal + (suffix.offset == 0 ? 1 : 2);
  return true;
}

/// A pointer when `name` is part of the question's name in the message or equals it octet by octet;
/// else 0. Other spellings and ancestors are left to the table.
std::uint16_t MessageWriter::question_pointer(NameView name) const noexcept {
  const std::uint8_t* question = space_.data() + kHeaderOctets;
  const auto distance = static_cast<std::uintptr_t>(reinterpret_cast<std::uintptr_t>(name.data()) -
                                                    reinterpret_cast<std::uintptr_t>(question));
  if (distance < question_size_) return pointer_to(kHeaderOctets + distance);
  if (name.size() == question_size_ && std::memcmp(name.data(), question, name.size()) == 0)
    return pointer_to(kHeaderOctets);
  return 0;
}

/// Puts the table into use: it then knows the question's name and all ancestors of it.
void MessageWriter::prepare_table() noexcept {
  table_.clear(static_cast<std::size_t>(std::max<std::ptrdiff_t>(limit_, 0)));
  table_ready_ = true;
  const NameView name = question_name();
  if (name.is_root()) return;
  const std::size_t size = std::exchange(size_, kHeaderOctets);
  enter_new_names(longest_suffix(name), name);
  size_ = size;
}

/// Looks the name's ancestors up from the root on, until one is not there: the next longer ones
/// then cannot be there either, as a name is entered after its ancestors.
MessageWriter::Suffix MessageWriter::longest_suffix(NameView name) const noexcept {
  Suffix suffix;
  std::size_t count = 0;
  for (std::size_t at = 0; name.data()[at] != 0; at += name.data()[at] + 1U)
    suffix.labels[count++] = static_cast<std::uint8_t>(at);
  suffix.offset = 0;
  suffix.hash = 0;
  for (suffix.new_labels = count; suffix.new_labels > 0; --suffix.new_labels) {
    const std::uint8_t* label = name.data() + suffix.labels[suffix.new_labels - 1];
    suffix.hash = hash_label(suffix.hash, label);
    const auto place = table_.find(space_.data(), suffix.hash, label, suffix.offset);
    suffix.slot = place.slot;
    if (place.offset == 0) break;
    suffix.offset = place.offset;
  }
  return suffix;
}

/// Enters the name at size_, just written, and those of its ancestors that are new; shortest first,
/// and none after one that found no place, since it could never be found.
void MessageWriter::enter_new_names(const Suffix& suffix, NameView name) noexcept {
  std::uint64_t hash = suffix.hash;
  std::uint16_t slot = suffix.slot;
  for (std::size_t i = suffix.new_labels; i-- > 0;) {
    if (!table_.enter(slot, hash, size_ + suffix.labels[i]) || i == 0) return;
    hash = hash_label(hash, name.data() + suffix.labels[i - 1]);
    slot = table_.free_slot(hash);
  }
}

}  // namespace pando::dns
