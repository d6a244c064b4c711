#include "zone/dump/dump_reader.h"

#include <algorithm>

namespace pando::zone {

namespace {

/// A length may lie: memory is allocated only as bytes arrive.
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

Status out_of_place(const char* what) { return fail(Errc::kCorrupt, "{} in a wrong place", what); }

}  // namespace

tl::unexpected<Error> DumpReader::wrong(const Error& why) const {
  return fail(why.code, "{}: byte {}: {}", name_, offset_, why.text);
}

Result<DumpReader> DumpReader::open(Source source, std::string name) {
  DumpReader reader(std::move(source), std::move(name));
  Bytes bytes;
  auto read = reader.read(bytes, kDumpHeaderBytes);
  if (!read && read.error().code != Errc::kTruncated) return reader.wrong(read.error());
  auto header = decode_dump_header(bytes);
  if (!header) return reader.wrong(header.error());
  reader.header_ = *header;
  return reader;
}

/// Appends `count` bytes of the file; kTruncated when the file ends before.
Status DumpReader::read(Bytes& into, std::size_t count) {
  while (count > 0) {
    const std::size_t part = std::min(count, kReadBytes);
    const std::size_t before = into.size();
    into.resize(before + part);
    auto got = source_(std::span(into).subspan(before));
    into.resize(before + (got ? *got : 0));
    if (!got) return pass(got);
    next_ += *got;
    if (*got < part) return fail(Errc::kTruncated, "the file ends in the middle of a dump");
    count -= part;
  }
  return {};
}

Result<DumpItem> DumpReader::next() {
  offset_ = next_;
  Bytes bytes;
  if (auto got = read(bytes, kDumpFrameBytes); !got) return wrong(got.error());
  const auto frame = decode_dump_frame(bytes);
  if (!frame) return wrong({Errc::kCorrupt, "not a record of a dump"});
  if (frame->number != ++number_)
    return wrong(
        {Errc::kCorrupt, fmt::format("record {} where {} comes next", frame->number, number_)});
  if (auto got = read(bytes, frame->body_bytes); !got) return wrong(got.error());
  const ByteView whole(bytes);
  auto item = decode_dump_record(whole.first(kDumpFrameBytes), whole.subspan(kDumpFrameBytes),
                                 header_.nonce, zone_.name);
  if (!item) return wrong(item.error());
  if (auto taken = take(*item); !taken) return wrong(taken.error());
  return item;
}

/// Checks whether the item may come at this place.
Status DumpReader::take(DumpItem& item) {
  if (auto* zone = std::get_if<DumpZone>(&item)) return take_zone(*zone);
  if (const auto* counts = std::get_if<DumpCounts>(&item)) return end(*counts);
  if (stage_ == Stage::kBetween || stage_ == Stage::kEnd) return out_of_place("a zone's record");
  if (const auto* part = std::get_if<DumpPart>(&item)) return take_part(*part);
  if (const auto* changeset = std::get_if<DumpChangeset>(&item)) return take_changeset(*changeset);
  if (data_.changeset && !data_.changeset->last)
    return out_of_place("another record than a changeset's");
  if (const auto* snapshot = std::get_if<DumpSnapshot>(&item))
    return take_snapshot(snapshot->version);
  if (const auto* archive = std::get_if<DumpArchive>(&item)) return take_archive(*archive);
  if (std::holds_alternative<DumpNote>(item)) {
    stage_ = Stage::kNotes;
    return {};
  }
  return end_zone();
}

Status DumpReader::take_zone(DumpZone& zone) {
  if (stage_ != Stage::kBetween) return out_of_place("a zone");
  if (counts_.zones > 0 && dns::compare_canonical(zone_.name, zone.name) >= 0)
    return fail(Errc::kCorrupt, "{} after {}: zones are in order", to_text(zone.name),
                to_text(zone_.name));
  zone_ = zone;
  labels_.clear();
  data_ = {};
  stage_ = Stage::kRecords;
  ++counts_.zones;
  return {};
}

/// Parts may come for a zone without data of its own: they may be archived data.
Status DumpReader::take_part(const DumpPart& part) {
  if (stage_ != Stage::kRecords) return out_of_place("a part of a zone");
  data_.records += part.records.added.size();
  return {};
}

Status DumpReader::take_changeset(const DumpChangeset& changeset) {
  if (stage_ > Stage::kHistory || data_.records == 0) return out_of_place("a changeset");
  stage_ = Stage::kHistory;
  if (const auto& before = data_.changeset; before && !before->last) {
    if (!(changeset.from == before->from) || !(changeset.to == before->to))
      return fail(Errc::kCorrupt, "a changeset from {} to {} after a part of one from {} to {}",
                  changeset.from.value, changeset.to.value, before->from.value, before->to.value);
  } else if (data_.reached && !(changeset.from == *data_.reached)) {
    return fail(Errc::kCorrupt, "a changeset from {} to {} after serial {}", changeset.from.value,
                changeset.to.value, data_.reached->value);
  }
  if (changeset.last) ++counts_.changesets;
  data_.reached = changeset.to;
  data_.changeset = DumpChangeset{changeset.from, changeset.to, changeset.last, {}};
  return {};
}

Status DumpReader::take_snapshot(const ZoneSnapshot& version) {
  if (stage_ > Stage::kHistory) return out_of_place("a snapshot");
  if (labels_.size() >= kMaxSnapshots)
    return fail(Errc::kCorrupt, "{} has more snapshots than a zone may have", to_text(zone_.name));
  if (std::find(labels_.begin(), labels_.end(), version.label) != labels_.end())
    return fail(Errc::kCorrupt, "{} has two snapshots '{}'", to_text(zone_.name), version.label);
  labels_.push_back(version.label);
  ++counts_.snapshots;
  if (data_.records > 0) stage_ = Stage::kHistory;  // no more records of these data can come
  if (!version.held()) return {};
  stage_ = Stage::kHistory;
  data_.has_snapshot = true;
  if (data_.records > 0 && data_.reached.value_or(version.serial) == version.serial) {
    data_.reached = version.serial;
    return {};
  }
  return fail(Errc::kCorrupt, "'{}' of {} is of serial {}, which is not there", version.label,
              to_text(zone_.name), version.serial.value);
}

Status DumpReader::take_archive(const DumpArchive& archive) {
  if (stage_ > Stage::kHistory || !data_.has_snapshot) return out_of_place("archived data");
  if (auto fine = check_data(archive.serial, archive.records); !fine) return fine;
  data_ = {};
  stage_ = Stage::kRecords;
  return {};
}

/// Checks that the data match the announced serial and count of records.
Status DumpReader::check_data(dns::Serial serial, std::uint64_t records) const {
  if (data_.records != records)
    return fail(Errc::kCorrupt, "{} has {} records, its header counts {}", to_text(zone_.name),
                data_.records, records);
  if (data_.reached && !(*data_.reached == serial))
    return fail(Errc::kCorrupt, "the history of {} ends at {}, the zone has serial {}",
                to_text(zone_.name), data_.reached->value, serial.value);
  return {};
}

Status DumpReader::end_zone() {
  if (!zone_.loaded && data_.records > 0) return out_of_place("records of a zone without data");
  if (auto fine = check_data(zone_.serial, zone_.records); !fine) return fine;
  counts_.records += data_.records;
  stage_ = Stage::kBetween;
  return {};
}

Status DumpReader::end(const DumpCounts& counts) {
  if (stage_ != Stage::kBetween) return out_of_place("the end");
  stage_ = Stage::kEnd;
  if (!(counts == counts_)) return fail(Errc::kCorrupt, "the counts at the end do not fit");
  Bytes more;
  if (auto got = read(more, 1); got)
    return fail(Errc::kCorrupt, "there is more after the end");
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
