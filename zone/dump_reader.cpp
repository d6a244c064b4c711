#include "zone/dump_reader.h"

#include <algorithm>

namespace pando::zone {

namespace {

/// A length may lie: memory is taken as octets come.
constexpr std::size_t kReadOctets = std::size_t{1} << 20;

Status out_of_place(const char* what) { return fail(Errc::kCorrupt, "{} where none can be", what); }

}  // namespace

tl::unexpected<Error> DumpReader::wrong(const Error& why) const {
  return fail(why.code, "{}: octet {}: {}", name_, offset_, why.text);
}

Result<DumpReader> DumpReader::open(Source source, std::string name) {
  DumpReader reader(std::move(source), std::move(name));
  Bytes bytes;
  auto read = reader.read(bytes, kDumpHeaderOctets);
  if (!read && read.error().code != Errc::kTruncated) return reader.wrong(read.error());
  auto header = decode_dump_header(bytes);
  if (!header) return reader.wrong(header.error());
  reader.header_ = *header;
  return reader;
}

/// Appends; kTruncated with fewer at the end of the file.
Status DumpReader::read(Bytes& into, std::size_t octets) {
  while (octets > 0) {
    const std::size_t part = std::min(octets, kReadOctets);
    const std::size_t before = into.size();
    into.resize(before + part);
    auto got = source_(std::span(into).subspan(before));
    into.resize(before + (got ? *got : 0));
    if (!got) return pass(got);
    next_ += *got;
    if (*got < part) return fail(Errc::kTruncated, "the file ends in the middle of a dump");
    octets -= part;
  }
  return {};
}

Result<DumpItem> DumpReader::next() {
  offset_ = next_;
  Bytes bytes;
  if (auto got = read(bytes, kDumpFrameOctets); !got) return wrong(got.error());
  const auto frame = decode_dump_frame(bytes);
  if (!frame) return wrong({Errc::kCorrupt, "not a record of a dump"});
  if (frame->number != ++number_)
    return wrong(
        {Errc::kCorrupt, fmt::format("record {} where {} comes next", frame->number, number_)});
  if (auto got = read(bytes, frame->body_octets); !got) return wrong(got.error());
  const ByteView whole(bytes);
  auto item = decode_dump_record(whole.first(kDumpFrameOctets), whole.subspan(kDumpFrameOctets),
                                 header_.nonce, zone_.name);
  if (!item) return wrong(item.error());
  if (auto taken = take(*item); !taken) return wrong(taken.error());
  return item;
}

/// Whether the item may come now.
Status DumpReader::take(DumpItem& item) {
  if (auto* zone = std::get_if<DumpZone>(&item)) return take_zone(*zone);
  if (const auto* counts = std::get_if<DumpCounts>(&item)) return end(*counts);
  if (stage_ == Stage::kBetween || stage_ == Stage::kEnd) return out_of_place("a zone's record");
  if (const auto* part = std::get_if<DumpPart>(&item)) {
    if (stage_ != Stage::kRecords || !zone_.loaded) return out_of_place("a part of a zone");
    records_ += part->records.added.size();
    return {};
  }
  if (const auto* difference = std::get_if<DumpDifference>(&item))
    return take_difference(*difference);
  if (difference_ && !difference_->last) return out_of_place("another record than a difference's");
  if (std::holds_alternative<DumpNote>(item)) {
    stage_ = Stage::kNotes;
    return {};
  }
  return end_zone();
}

Status DumpReader::take_zone(DumpZone& zone) {
  if (stage_ != Stage::kBetween) return out_of_place("a zone");
  if (counts_.zones > 0 && dns::compare_canonical(zone_.name, zone.name) >= 0)
    return fail(Errc::kCorrupt, "{} behind {}", to_text(zone.name), to_text(zone_.name));
  zone_ = zone;
  records_ = 0;
  difference_.reset();
  stage_ = Stage::kRecords;
  ++counts_.zones;
  return {};
}

Status DumpReader::take_difference(const DumpDifference& difference) {
  if (stage_ == Stage::kNotes || !zone_.loaded) return out_of_place("a difference");
  stage_ = Stage::kHistory;
  if (difference_) {
    const bool follows = difference_->last ? difference.from == difference_->to
                                           : difference.from == difference_->from &&
                                                 difference.to == difference_->to;
    if (!follows)
      return fail(Errc::kCorrupt, "a difference from {} to {} behind one from {} to {}",
                  difference.from.value, difference.to.value, difference_->from.value,
                  difference_->to.value);
  }
  if (difference.last) ++counts_.differences;
  difference_ = DumpDifference{difference.from, difference.to, difference.last, {}};
  return {};
}

Status DumpReader::end_zone() {
  if (records_ != zone_.records)
    return fail(Errc::kCorrupt, "{} has {} records where {} are said to be", to_text(zone_.name),
                records_, zone_.records);
  if (difference_ && !(difference_->to == zone_.serial))
    return fail(Errc::kCorrupt, "the history of {} ends at {}, the zone has serial {}",
                to_text(zone_.name), difference_->to.value, zone_.serial.value);
  counts_.records += records_;
  stage_ = Stage::kBetween;
  return {};
}

Status DumpReader::end(const DumpCounts& counts) {
  if (stage_ != Stage::kBetween) return out_of_place("the end");
  stage_ = Stage::kEnd;
  if (!(counts == counts_)) return fail(Errc::kCorrupt, "the counts at the end do not fit");
  Bytes more;
  if (auto got = read(more, 1); got)
    return fail(Errc::kCorrupt, "something stands behind the end");
  else if (got.error().code != Errc::kTruncated)
    return got;
  return {};
}

Result<DumpCounts> check_dump(DumpReader& reader) {
  for (;;) {
    auto item = reader.next();
    if (!item) return pass(item);
    if (const auto* counts = std::get_if<DumpCounts>(&*item)) return *counts;
  }
}

}  // namespace pando::zone
