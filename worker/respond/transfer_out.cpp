#include "worker/respond/transfer_out.h"

#include <algorithm>
#include <array>
#include <utility>

#include "dns/octet_words.h"

namespace pando::worker {

namespace {

using dns::RRClass;
using dns::RRType;
using dns::Section;

/// Space for a TSIG record with the longest name, algorithm and MAC (RFC 8945 §4.2), whether worker
/// or manager signs.
constexpr std::size_t kSignatureRoom = 255 + 10 + 26 + 16 + 64 + 6;
static_assert(dns::kBesideRecordOctets >= dns::kHeaderOctets + 255 + 4 + kSignatureRoom,
              "a signed message with a question holds the largest record of a zone");

/// Writes the SOA record that opens and closes a transfer.
bool write_soa(dns::MessageWriter& writer, const zone::ZoneView& zone) {
  const zone::RRsetView soa = zone.soa();
  return writer.put_record(Section::kAnswer, zone.apex(), RRType::kSOA, RRClass::kIN,
                           soa.ttl().seconds, soa.first_rdata());
}

template <class Visit>
void for_each(const zone::RRsetView& set, bool signatures, Visit&& visit) {
  if (signatures)
    set.for_each_signature(visit);
  else
    set.for_each_rdata(visit);
}

}  // namespace

Result<HeldVersion> HeldVersion::take(std::shared_ptr<shm::Reader> reader,
                                      const shm::Reader::View& view) {
  auto lease = reader->take_lease();
  if (!lease) return pass(lease);
  return HeldVersion(std::move(reader), view, *lease);
}

HeldVersion::HeldVersion(std::shared_ptr<shm::Reader> reader, const shm::Reader::View& view,
                         std::size_t lease) noexcept
    : reader_(std::move(reader)), view_(view), lease_(lease) {}

HeldVersion::HeldVersion(HeldVersion&& other) noexcept
    : reader_(std::exchange(other.reader_, nullptr)), view_(other.view_), lease_(other.lease_) {}

HeldVersion::~HeldVersion() {
  if (reader_) reader_->give_up_lease(lease_);
}

// ZoneStream
// ---------------------------------------------------------------------------------------

ZoneStream::ZoneStream(const zone::ZoneView& zone)
    : zone_(zone), cursor_(zone.begin()), apex_octets_(zone.apex().size()), known_(kKnownSets) {
  std::copy_n(zone.apex().data(), apex_octets_, names_.end() - std::ptrdiff_t(apex_octets_));
}

/// Forgets the places in the message before. The owner's view is made anew, since the stream may
/// have been moved.
void ZoneStream::begin_message() noexcept {
  ++message_;
  records_before_ = records_;
  head_ = {.owner = {names_.data() + names_.size() - owner_octets_, owner_octets_}};
}

ZoneStream::Step ZoneStream::fill(dns::MessageWriter& writer) {
  begin_message();
  if (!begun_) {
    if (!put_soa(writer)) return Step::kStuck;
    begun_ = true;
  }
  while (!at_end_) {
    if (!current_ && !take_owner()) break;
    if (!put_record(writer)) return is_fresh() ? Step::kStuck : Step::kMore;
    current_ = {};
  }
  // In a damaged store the walk ends early. An incomplete zone must not look complete to the
  // client.
  if (records_ != zone_.record_count()) return Step::kDamaged;
  if (put_soa(writer)) return Step::kDone;
  return is_fresh() ? Step::kStuck : Step::kMore;
}

/// Goes to the next owner; false at the end. Like ZoneView::owner_of(), but the apex is there
/// already.
bool ZoneStream::take_owner() noexcept {
  current_ = cursor_.next();
  parts_done_ = 0;
  at_end_ = !current_;
  if (at_end_) return false;
  const ByteView labels = current_.relative_owner();
  const bool fits = labels.size() + apex_octets_ <= names_.size();
  owner_octets_ = apex_octets_ + (fits ? labels.size() : 0);
  std::uint8_t* const owner = names_.data() + names_.size() - owner_octets_;
  if (fits) dns::copy_octets(owner, labels.data(), labels.size());
  head_.owner = {owner, owner_octets_};
  head_.owner_place = {};
  return true;
}

bool ZoneStream::put_soa(dns::MessageWriter& writer) {
  if (!write_soa(writer, zone_)) return false;
  ++records_;
  return true;
}

/// Writes the current owner's remaining records; returns false when the message is full.
bool ZoneStream::put_record(dns::MessageWriter& writer) {
  std::size_t part = 0;
  bool fits = true;
  const auto put_next = [&](const zone::RRsetView& set, bool signatures) {
    if (!fits || part++ < parts_done_) return;
    fits = put_part(writer, set, signatures);
    if (!fits) return;
    ++parts_done_;
    singles_done_ = 0;
  };
  current_.for_each_rrset([&](const zone::RRsetView& set) {
    if (set.count() > 0) put_next(set, false);
    if (set.signature_count() > 0) put_next(set, true);
  });
  return fits;
}

/// Writes the data or the signatures of one RRset: as a whole, or record by record when an empty
/// message is too small for the whole.
bool ZoneStream::put_part(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures) {
  // The apex' SOA opens and closes the transfer and must not stand between (RFC 5936 §2.2).
  if (!signatures && set.type() == RRType::kSOA && owner_octets_ == apex_octets_) return true;
  begin_set(writer, set, signatures);
  if (singles_done_ > 0) return put_singly(writer, set, signatures);
  const std::uint16_t before = writer.count(Section::kAnswer);
  const bool whole =
      !signatures && set.is_shared() ? put_shared(writer, set) : put_whole(writer, set, signatures);
  // Fewer than the set's count when the RRset is damaged.
  records_ += std::size_t{writer.count(Section::kAnswer)} - before;
  return whole || (is_fresh() && put_singly(writer, set, signatures));
}

/// Makes head_ that of an RRset. The owner is searched once in a message, and only its labels in
/// front of the apex.
void ZoneStream::begin_set(dns::MessageWriter& writer, const zone::RRsetView& set,
                           bool signatures) noexcept {
  if (!head_.rest) {
    head_.rest = writer.place_of(zone_.apex());
    head_.rest_octets = head_.rest ? apex_octets_ : 1;
  }
  head_.type = signatures ? RRType::kRRSIG : set.type();
  head_.ttl = set.ttl();
  store_be16(covered_.data(), static_cast<std::uint16_t>(set.type()));
  head_.prefix = signatures ? ByteView(covered_) : ByteView();
}

bool ZoneStream::put_whole(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures,
                           std::span<dns::NamePlace> targets) {
  const auto each = [&](auto&& visit) { for_each(set, signatures, visit); };
  return writer.put_rrset(Section::kAnswer, head_, each, targets);
}

/// Writes an RRset that other names have as well: once as names, then as pointers to these.
bool ZoneStream::put_shared(dns::MessageWriter& writer, const zone::RRsetView& set) {
  const auto address = reinterpret_cast<std::uintptr_t>(set.identity());
  KnownSet& known = known_[(address >> 3 ^ address >> 11) % kKnownSets];
  if (known.set == set.identity() && known.message == message_)
    return writer.put_pointing_rrset(Section::kAnswer, head_,
                                     std::span(known.servers).first(known.count));
  known.message = 0;
  const std::uint16_t before = writer.count(Section::kAnswer);
  if (!put_whole(writer, set, false, known.servers)) return false;
  known.set = set.identity();
  known.count = std::uint32_t{writer.count(Section::kAnswer)} - before;
  const bool all =
      known.count > 0 && known.count <= known.servers.size() &&
      std::all_of(known.servers.begin(), known.servers.begin() + known.count,
                  [](const dns::NamePlace& place) { return static_cast<bool>(place); });
  if (all) known.message = message_;
  return true;
}

bool ZoneStream::put_singly(dns::MessageWriter& writer, const zone::RRsetView& set,
                            bool signatures) {
  std::size_t index = 0;
  bool fits = true;
  for_each(set, signatures, [&](ByteView rdata) {
    if (!fits || index++ < singles_done_) return;
    fits = writer.put_record(Section::kAnswer, head_.owner, head_.type, RRClass::kIN,
                             head_.ttl.seconds, rdata, head_.prefix);
    if (!fits) return;
    ++singles_done_;
    ++records_;
  });
  return fits;
}

// DifferenceStream
// ---------------------------------------------------------------------------------

DifferenceStream::DifferenceStream(const zone::ZoneView& zone, zone::HistoryReader reader)
    : zone_(zone), reader_(std::move(reader)) {}

std::optional<DifferenceStream> DifferenceStream::since(const zone::ZoneView& zone,
                                                        dns::Serial since) {
  auto reader = zone::HistoryReader::from(zone, since);
  if (!reader || reader->records() > zone.record_count()) return std::nullopt;
  return DifferenceStream(zone, std::move(*reader));
}

DifferenceStream::Step DifferenceStream::fill(dns::MessageWriter& writer) {
  bool fresh = true;
  if (!begun_) {
    if (!put_soa(writer)) return Step::kStuck;
    begun_ = true;
    fresh = false;
    pending_ = reader_.next();
  }
  for (; pending_ != nullptr; pending_ = reader_.next()) {
    if (!writer.put_record(Section::kAnswer, pending_->owner, pending_->type, RRClass::kIN,
                           pending_->ttl.seconds, pending_->rdata))
      return fresh ? Step::kStuck : Step::kMore;
    ++records_;
    fresh = false;
  }
  if (reader_.damaged()) return Step::kDamaged;
  if (put_soa(writer)) return Step::kDone;
  return fresh ? Step::kStuck : Step::kMore;
}

bool DifferenceStream::put_soa(dns::MessageWriter& writer) {
  if (!write_soa(writer, zone_)) return false;
  ++records_;
  return true;
}

// TransferOut
// --------------------------------------------------------------------------------------

TransferOut::TransferOut(TransferPlan plan, HeldVersion version, const Client& client)
    : plan_(std::move(plan)),
      version_(std::move(version)),
      client_(client),
      zone_(version_.store_view().zone_at(plan_.apex)) {
  if (!zone_) return;
  auto differences = plan_.since ? DifferenceStream::since(zone_, *plan_.since) : std::nullopt;
  if (differences)
    stream_.emplace<DifferenceStream>(std::move(*differences));
  else
    stream_.emplace<ZoneStream>(zone_);
}

StreamStep TransferOut::fill(dns::MessageWriter& writer) {
  if (auto* differences = std::get_if<DifferenceStream>(&stream_)) return differences->fill(writer);
  return std::get<ZoneStream>(stream_).fill(writer);
}

dns::MessageWriter TransferOut::new_message(std::span<std::uint8_t> space) {
  dns::MessageWriter writer(space, std::min(space.size(), kTransferMessageOctets));
  writer.put_header(plan_.header);
  writer.keep_case();  // the client will serve the same zone
  if (messages_ > 0) return writer;
  // RFC 5936 §2.2.1: the first message repeats the question, later ones may leave it out.
  const dns::Question& question = plan_.question;
  if (!writer.put_question(question.name, question.type, question.rr_class)) writer.set_tc();
  return writer;
}

TransferOut::Step TransferOut::fail(ipc::TransferEnd end) noexcept {
  end_ = end;
  return Step::kFailed;
}

TransferOut::Step TransferOut::next(std::span<std::uint8_t> space, std::size_t& size,
                                    std::uint64_t now) {
  using End = ipc::TransferEnd;
  if (stream_.index() == 0) return fail(End::kZoneGone);
  if (version_.revoked()) return fail(End::kVersionGone);
  // A record may exceed the usual message size; this message then uses all of the space.
  dns::MessageWriter writer = new_message(space);
  dns::OptBuilder opt(plan_.udp_payload, dns::Rcode::kNoError, false);
  if (plan_.expire) opt.add_expire(*plan_.expire);
  const bool with_opt = plan_.edns && messages_ == 0;  // RFC 5936 §2.2.5
  const bool is_signed = plan_.session || has_managers_key();
  const std::size_t room = (with_opt ? opt.size() : 0) + (is_signed ? kSignatureRoom : 0);
  writer.reserve(room);
  StreamStep filled = fill(writer);
  if (filled == StreamStep::kStuck) {
    writer.release(space.size() - std::min(space.size(), kTransferMessageOctets));
    filled = fill(writer);
  }
  if (filled == StreamStep::kStuck) return fail(End::kRecordTooLarge);
  if (filled == StreamStep::kDamaged) return fail(End::kDataDamaged);
  writer.release(room);
  if (with_opt && !writer.put_raw_additional(opt.record())) return fail(End::kRecordTooLarge);
  size = writer.finish().size();
  if (plan_.session) {
    auto signed_size = plan_.session->sign(space, size, now);
    if (!signed_size) return fail(End::kNotSigned);
    size = *signed_size;
  }
  ++messages_;
  return filled == StreamStep::kDone ? Step::kLastMessage : Step::kMessage;
}

Bytes TransferOut::take_request() {
  if (std::exchange(request_taken_, true)) return {};
  return plan_.held_request;
}

ipc::TransferFinished TransferOut::report(ipc::TransferEnd end) const {
  ipc::TransferFinished report;
  if (client_.peer != nullptr) report.peer = *client_.peer;
  report.zone = plan_.apex;
  report.client = client_.remote;
  report.end = end;
  report.serial = zone_ ? zone_.serial().value : 0;
  report.messages = messages_;
  report.bytes = octets_;
  report.incremental = incremental();
  if (const auto* whole = std::get_if<ZoneStream>(&stream_)) report.records = whole->records();
  if (const auto* part = std::get_if<DifferenceStream>(&stream_)) report.records = part->records();
  report.milliseconds =
      static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::steady_clock::now() - begun_)
                                     .count());
  return report;
}

}  // namespace pando::worker
