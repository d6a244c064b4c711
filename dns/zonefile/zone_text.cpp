#include "dns/zonefile/zone_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "dns/rdata/rdata.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

void append_number(std::string& out, std::uint32_t number) {
  char digits[10];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

/// True for an owner at or below `origin` with the origin's letter case: a relative owner is read
/// back with that case.
bool ends_in(NameView owner, NameView origin) noexcept {
  return owner.is_at_or_below(origin) &&
         std::ranges::equal(owner.bytes().last(origin.size()), origin.bytes());
}

}  // namespace

void append_record_text(std::string& out, std::string_view owner, RRType type, Ttl ttl,
                        ByteView rdata) {
  out += owner;
  out += ' ';
  append_number(out, ttl.seconds);
  out += " IN ";
  out += to_text(type);
  out += ' ';
  out += rdata_to_text(type, rdata);
}

ZoneTextWriter::ZoneTextWriter(NameView origin, ZoneTextOptions options, Output output)
    : origin_(origin), options_(options), output_(std::move(output)) {
  block_.reserve(options_.block_bytes + 4096);
  if (options_.relative_owners) block_ = "$ORIGIN " + to_text(origin) + "\n";
  write_owner(owner_);
}

Status ZoneTextWriter::comment(std::string_view text) {
  block_ += "; ";
  for (const char c : text) block_ += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  block_ += '\n';
  return hand_out_full_block();
}

Status ZoneTextWriter::add(NameView owner, RRType type, Ttl ttl, ByteView rdata) {
  // Compares octet for octet, since the case of a name is kept.
  if (!std::ranges::equal(owner.bytes(), owner_.view().bytes())) write_owner(owner);
  append_record_text(block_, owner_text_, type, ttl, rdata);
  block_ += '\n';
  ++records_;
  return hand_out_full_block();
}

void ZoneTextWriter::write_owner(NameView owner) {
  owner_ = Name(owner);
  owner_text_.clear();
  if (!options_.relative_owners || !ends_in(owner, origin_)) {
    append_labels_text(owner_text_, owner.bytes());
  } else if (owner.size() == origin_.size()) {
    owner_text_ = "@";
  } else {
    append_labels_text(owner_text_, owner.bytes().first(owner.size() - origin_.size()));
  }
}

Status ZoneTextWriter::hand_out_full_block() {
  if (block_.size() < options_.block_bytes) return {};
  return finish();
}

Status ZoneTextWriter::finish() {
  if (block_.empty()) return {};
  Status written = output_(block_);
  block_.clear();
  return written;
}

}  // namespace pando::dns
