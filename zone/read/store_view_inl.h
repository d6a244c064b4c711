#pragma once

// Bodies of the templates of zone/read/store_view.h, and of what a walk asks of each record.

#include "dns/rdata/rdata.h"
#include "zone/read/record_scan.h"

namespace pando::zone {

/// Calls `visit` for each RDATA in its stored form, until `visit` returns false.
template <class Visit>
void RRsetView::for_each_stored(Visit&& visit) const {
  const std::uint8_t* p = data_;
  const std::uint8_t* const end = data_ + size_;
  const std::size_t fixed = dns::fixed_rdata_length(type_);
  for (unsigned i = 0; i < count_; ++i) {
    std::uint32_t length = static_cast<std::uint32_t>(fixed);
    if (fixed == 0) p = get_varint(p, end, length);
    if (p == nullptr || static_cast<std::size_t>(end - p) < length) return;
    if (!visit(ByteView(p, length))) return;
    p += length;
  }
}

template <class Visit>
void RRsetView::for_each_rdata(Visit&& visit) const {
  NameRoom room;
  for_each_stored([&](ByteView rdata) {
    if (type_ == kRelativeType && is_relative(rdata)) {
      rdata = whole_name(rdata, owner(), room);
      if (rdata.empty()) return false;
    }
    visit(rdata);
    return true;
  });
}

template <class Visit>
void RRsetView::for_each_signature(Visit&& visit) const {
  const std::uint8_t* p = data_;
  const std::uint8_t* const end = data_ + size_;
  const std::size_t fixed = dns::fixed_rdata_length(type_);
  const unsigned total = count_ + unsigned{signature_count_};
  for (unsigned i = 0; i < total; ++i) {
    std::uint32_t length = static_cast<std::uint32_t>(fixed);
    if (fixed == 0 || i >= count_) p = get_varint(p, end, length);
    if (p == nullptr || static_cast<std::size_t>(end - p) < length) return;
    if (i >= count_) visit(ByteView(p, length));
    p += length;
  }
}

inline ByteView RecordView::relative_owner() const noexcept {
  const ByteView labels(block_ + sizeof(RecordHeader), block_[1]);
  return are_labels(labels) ? labels : ByteView();
}

inline const std::uint8_t* RecordView::first() const noexcept { return first_rrset(block_, end()); }

inline std::size_t RecordView::rrset_count() const noexcept {
  return block_ == nullptr ? 0 : block_[2];
}

template <class Visit>
void RecordView::for_each_rrset(Visit&& visit) const {
  if (block_ == nullptr) return;
  const std::uint8_t* p = first();
  for (std::size_t left = rrset_count(); left > 0 && p != nullptr; --left) {
    RRsetView rrset;
    p = step(p, rrset);
    if (p != nullptr) visit(static_cast<const RRsetView&>(rrset));
  }
}

}  // namespace pando::zone
