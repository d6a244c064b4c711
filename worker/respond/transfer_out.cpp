#include "worker/respond/transfer_out.h"

#include <algorithm>
#include <array>
#include <utility>

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

std::array<std::uint8_t, 2> covered_type(RRType type) {
  std::array<std::uint8_t, 2> octets;
  store_be16(octets.data(), static_cast<std::uint16_t>(type));
  return octets;
}

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

ZoneStream::Step ZoneStream::fill(dns::MessageWriter& writer) {
  bool fresh = true;
  ++message_;
  apex_place_ = owner_place_ = {};
  if (!begun_) {
    if (!put_soa(writer)) return Step::kStuck;
    begun_ = true;
    fresh = false;
  }
  while (!at_end_) {
    if (!current_) {
      current_ = cursor_.next();
      parts_done_ = 0;
      at_end_ = !current_;
      if (at_end_) break;
      take_owner();
    }
    const std::uint64_t before = records_;
    const bool whole = put_record(writer, fresh);
    fresh = fresh && records_ == before;
    if (!whole) return fresh ? Step::kStuck : Step::kMore;
    current_ = {};
  }
  // In a damaged store the walk ends early. An incomplete zone must not look complete to the
  // client.
  if (records_ != zone_.record_count()) return Step::kDamaged;
  if (put_soa(writer)) return Step::kDone;
  return fresh ? Step::kStuck : Step::kMore;
}

/// Like ZoneView::owner_of(), but the apex is there already.
void ZoneStream::take_owner() noexcept {
  const ByteView labels = current_.relative_owner();
  const bool fits = labels.size() + apex_octets_ <= names_.size();
  owner_octets_ = apex_octets_ + (fits ? labels.size() : 0);
  if (fits) std::copy(labels.begin(), labels.end(), names_.end() - std::ptrdiff_t(owner_octets_));
  owner_place_ = {};
}

bool ZoneStream::put_soa(dns::MessageWriter& writer) {
  if (!write_soa(writer, zone_)) return false;
  ++records_;
  return true;
}

/// Writes the current owner's remaining records; returns false when the message is full.
bool ZoneStream::put_record(dns::MessageWriter& writer, bool fresh) {
  std::size_t part = 0;
  bool fits = true;
  current_.for_each_rrset([&](const zone::RRsetView& set) {
    for (const bool signatures : {false, true}) {
      const std::size_t count = signatures ? set.signature_count() : set.count();
      if (count == 0 || !fits || part++ < parts_done_) continue;
      const std::uint64_t before = records_;
      fits = put_part(writer, set, signatures, fresh);
      fresh = fresh && records_ == before;
      if (!fits) return;
      ++parts_done_;
      singles_done_ = 0;
    }
  });
  return fits;
}

/// Writes the data or the signatures of one RRset: as a whole, or record by record when an empty
/// message is too small for the whole.
bool ZoneStream::put_part(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures,
                          bool fresh) {
  // The apex' SOA opens and closes the transfer and must not stand between (RFC 5936 §2.2).
  if (!signatures && set.type() == RRType::kSOA && owner_octets_ == apex_octets_) return true;
  if (singles_done_ > 0) return put_singly(writer, set, signatures);
  std::size_t given = 0;  // fewer than `count` when the RRset is damaged
  const bool whole = !signatures && set.is_shared() ? put_shared(writer, set, given)
                                                    : put_whole(writer, set, signatures, given);
  if (whole) records_ += given;
  return whole || (fresh && put_singly(writer, set, signatures));
}

/// The head of one of the current owner's RRsets. The owner is searched once in a message, and only
/// its labels in front of the apex.
dns::RRsetHead ZoneStream::head_of(const zone::RRsetView& set, bool signatures,
                                   dns::MessageWriter& writer) noexcept {
  if (!apex_place_) apex_place_ = writer.place_of(zone_.apex());
  dns::RRsetHead head{
      .owner = owner(), .type = signatures ? RRType::kRRSIG : set.type(), .ttl = set.ttl()};
  head.owner_place = owner_place_;
  if (apex_place_ && owner_octets_ > apex_octets_) {
    head.rest = apex_place_;
    head.rest_octets = apex_octets_;
  }
  return head;
}

bool ZoneStream::put_whole(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures,
                           std::size_t& given, std::span<dns::NamePlace> targets) {
  const auto covered = covered_type(set.type());
  dns::RRsetHead head = head_of(set, signatures, writer);
  if (signatures) head.prefix = covered;
  const auto each = [&](auto&& visit) {
    for_each(set, signatures, [&](ByteView rdata) {
      visit(rdata);
      ++given;
    });
  };
  const bool whole = writer.put_rrset(Section::kAnswer, head, each, targets);
  if (whole) owner_place_ = head.owner_place;
  return whole;
}

/// Writes an RRset that other names have as well: once as names, then as pointers to these.
bool ZoneStream::put_shared(dns::MessageWriter& writer, const zone::RRsetView& set,
                            std::size_t& given) {
  const auto address = reinterpret_cast<std::uintptr_t>(set.identity());
  KnownSet& known = known_[(address >> 3 ^ address >> 11) % kKnownSets];
  if (known.set == set.identity() && known.message == message_) {
    dns::RRsetHead head = head_of(set, false, writer);
    const bool whole = writer.put_pointing_rrset(Section::kAnswer, head,
                                                 std::span(known.servers).first(known.count));
    if (!whole) return false;
    owner_place_ = head.owner_place;
    given = known.count;
    return true;
  }
  known.message = 0;
  if (!put_whole(writer, set, false, given, known.servers)) return false;
  known.set = set.identity();
  const bool all = given > 0 && given <= known.servers.size() &&
                   std::all_of(known.servers.begin(), known.servers.begin() + given,
                               [](const dns::NamePlace& place) { return static_cast<bool>(place); });
  if (!all) return true;
  known.count = static_cast<std::uint32_t>(given);
  known.message = message_;
  return true;
}

bool ZoneStream::put_singly(dns::MessageWriter& writer, const zone::RRsetView& set,
                            bool signatures) {
  const auto covered = covered_type(set.type());
  std::size_t index = 0;
  bool fits = true;
  for_each(set, signatures, [&](ByteView rdata) {
    if (!fits || index++ < singles_done_) return;
    fits = writer.put_record(Section::kAnswer, owner(), signatures ? RRType::kRRSIG : set.type(),
                             RRClass::kIN, set.ttl().seconds, rdata,
                             signatures ? ByteView(covered) : ByteView());
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
