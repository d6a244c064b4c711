#include "worker/respond/answer_cache.h"

#include <algorithm>

#include "worker/answer/render.h"

namespace pando::worker {

namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using Part = AnswerPart::Kind;

/// Limit of a name error that is cached whole. A larger one is put together from its template:
/// other questions use the same one, so it is in the processor's caches, where a whole answer
/// seldom is.
constexpr std::size_t kMaxDenialOctets = 256;

/// True when a server's name shares more of its end with QNAME than the cut. Compression makes that
/// name shorter in this message than in the cached referral, so it may fit here.
/// `labels`: those right below the cut that lead to servers.
bool names_below_cut_help(dns::NameView qname, const AnswerPart& cut, const LabelSet& labels) {
  if (qname.size() == cut.name.size()) return false;
  dns::NameView child = qname;
  while (child.parent().size() > cut.name.size()) child = child.parent();
  return labels.may_have(child.data()) && cut.record.find(RRType::kNS).has_name_at_or_below(child);
}

/// The key of a whole answer to the question, whose class is IN. The limit is the client's: the
/// response's memory may be smaller, which is not known yet.
WholeAnswers::Key whole_key(const RequestContext& context) noexcept {
  const Request& request = context.request;
  const zone::ServerSettings& settings = *context.batch.settings;
  std::uint16_t limit = 0xFFFF;
  if (context.is_udp())
    limit = request.edns ? std::min(request.edns->udp_payload, settings.udp_payload) : 0;
  return {request.question.name, request.question.type, limit, request.dnssec_ok(),
          settings.minimal_responses};
}

/// Whether answers of this kind are cached whole.
bool is_whole_kind(const Answer& answer) noexcept {
  const bool is_answer = answer.rcode == Rcode::kNoError || answer.rcode == Rcode::kNXDomain;
  return is_answer && !answer.ede && !answer.depends_on_client &&
         answer.postponed.kind != Part::kReferral;
}

/// Names the part of an answer that may be cached as a template: a referral, or what name errors
/// below one name have in common. False: the answer has none.
bool name_part(const zone::Match& match, const zone::NameKey& key, Foreseen& out) noexcept {
  using Kind = AnswerTemplates::Kind;
  if (match.damaged || match.empty_non_terminal) return false;
  const bool is_absent = !match.barrier && !match.exact;
  if (match.exact && !match.barrier && !match.exact.has_ns()) return false;
  const std::size_t labels = match.barrier ? match.barrier_labels : match.encloser_labels;
  out.part_kind = is_absent ? Kind::kNameError : Kind::kReferral;
  out.part_name = key.name().ancestor(key.label_count() - labels);
  return true;
}

/// Of the part of the answer that may be cached.
AnswerTemplates::Key part_key(const RequestContext& context, const Foreseen& foreseen) noexcept {
  return {foreseen.part_kind, foreseen.zone.side_index(), foreseen.zone.data_version(),
          context.request.dnssec_ok(), foreseen.part_name};
}

/// Where SharedLookups may have a result for the question at a name of so many labels.
void sought_at(const RequestContext& context, std::size_t labels,
               std::optional<SharedLookups::Sought>& out) noexcept {
  out.reset();
  const dns::Question& question = context.request.question;
  if (question.rr_class != RRClass::kIN) return;
  const dns::NameView name = question.name;
  const std::size_t count = name.label_count();
  if (labels == 0 || count < labels) return;
  const bool is_whole = count == labels;
  // The zone itself answers a question for DS at a cut.
  if (is_whole && question.type == RRType::kDS) return;
  out.emplace(
      SharedLookups::Key{name.ancestor(count - labels), is_whole, context.request.dnssec_ok()});
}

/// False if the record of a recalled lookup was damaged since.
bool is_sound(const Foreseen& recalled, const zone::RecordView& record) noexcept {
  if (!record) return !recalled.record.has_record();
  return recalled.part_kind != AnswerTemplates::Kind::kReferral || record.has_ns();
}

/// Whether the answer is a referral, which is not cached whole.
bool refers(const zone::Match& match, const zone::ZoneView& zone, RRType type) noexcept {
  if (match.barrier) return match.barrier.has_ns();
  // The zone itself answers a question for DS at the cut.
  return match.exact && match.exact.has_ns() && type != RRType::kDS &&
         match.encloser_labels > zone.apex().label_count();
}

/// Of a part of the answer in hand.
inline AnswerTemplates::Key key_of(const AnswerCache::Inquiry& inquiry, AnswerTemplates::Kind kind,
                                   dns::NameView name) noexcept {
  return {kind, inquiry.zone.side_index(), inquiry.zone.data_version(), inquiry.options.dnssec_ok,
          name};
}
inline AnswerPlace place_of(const AnswerCache::Inquiry& inquiry,
                            const AnswerTemplates::Key& key) noexcept {
  const Foreseen* const foreseen = inquiry.foreseen;
  const bool is_known = foreseen != nullptr && foreseen->is_part(key.kind, key.name);
  return is_known ? foreseen->part : AnswerTemplates::place_of(key);
}

}  // namespace

void AnswerCache::find(const RequestContext& context, Inquiry& inquiry) noexcept {
  inquiry.context = &context;
  inquiry.foreseen = nullptr;
  inquiry.whole = nullptr;
  inquiry.is_recalled = false;
  const Foreseen* const foreseen = context.foreseen;
  if (foreseen != nullptr && foreseen->is_recalled) {
    const zone::RecordView record = foreseen->record.record_in(foreseen->zone);
    if (is_sound(*foreseen, record)) {
      const bool is_cut = foreseen->part_kind == AnswerTemplates::Kind::kReferral;
      inquiry.zone = foreseen->zone;
      inquiry.foreseen = foreseen;
      inquiry.is_recalled = true;
      inquiry.is_cacheable = false;
      inquiry.answer.clear();
      inquiry.answer.aa = !is_cut;
      inquiry.answer.postponed = {is_cut ? Part::kReferral : Part::kDenial, foreseen->part_name,
                                  record};
      return;
    }
  }
  inquiry.is_cacheable = context.request.question.rr_class == RRClass::kIN &&
                         (foreseen == nullptr || foreseen->whole.tag != 0);
  if (inquiry.is_cacheable) {
    inquiry.key = whole_key(context);
    inquiry.place = foreseen != nullptr ? foreseen->whole : WholeAnswers::place_of(inquiry.key);
    inquiry.whole = whole_.find(inquiry.key, inquiry.place);
  }
  const zone::StoreView& view = context.batch.view;
  const bool is_of_version = inquiry.whole != nullptr && inquiry.whole->version == view.version();
  inquiry.zone = is_of_version ? view.zone_at(inquiry.whole->bookmark) : zone::ZoneView();
}

void AnswerCache::set_zone(Inquiry& inquiry, const zone::ZoneView& zone) noexcept {
  const RequestContext& context = *inquiry.context;
  inquiry.zone = zone;
  if (inquiry.whole != nullptr &&
      !whole_.renew(*inquiry.whole, inquiry.place, zone, context.batch.view.version()))
    inquiry.whole = nullptr;
  // A question for DS may be answered by the zone above.
  if (context.foreseen != nullptr && context.foreseen->zone.is_same(zone))
    inquiry.foreseen = context.foreseen;
}

void AnswerCache::complete(Inquiry& inquiry) {
  Answer& answer = inquiry.answer;
  inquiry.denial.reset();
  if (answer.postponed.kind != Part::kDenial) return;
  if (!answer.depends_on_client) find_name_errors(inquiry);
  if (inquiry.denial)
    answer.rcode = Rcode::kNXDomain;
  else
    complete_now(inquiry);
}

bool AnswerCache::write(Inquiry& inquiry, dns::MessageWriter& writer) {
  const Answer& answer = inquiry.answer;
  if (answer.depends_on_client) {
    if (answer.postponed.kind != Part::kNone) complete_now(inquiry);
    return render(answer, inquiry.context->request.question, writer);
  }
  const bool inserts = inquiry.is_cacheable && is_whole_kind(answer) && whole_.wants(inquiry.place);
  const bool truncated =
      inserts ? write_and_insert(inquiry, writer) : write_sections(inquiry, writer);
  const Foreseen* const foreseen = inquiry.foreseen;
  if (recalls_ && foreseen != nullptr && foreseen->has_part && !foreseen->is_recalled &&
      !answer.depends_on_client)
    insert_lookup(inquiry);
  return truncated;
}

AnswerCache::Use AnswerCache::use() const noexcept {
  return {whole_.bytes(), lookups_.labels() > 0 ? 1U : 0U, templates_.bytes(),
          server_sets_.bytes()};
}

/// Makes a part for the response or the cache in part_, beside the present answer. False when the
/// part cannot be used.
bool AnswerCache::make_part(const Inquiry& inquiry, const dns::Question& question,
                            const AnswerPart& part) {
  return resolve_part(inquiry.zone, question, part, inquiry.options, hasher_, part_) &&
         !part_.depends_on_client;
}

/// Completes the answer itself. AA stays cleared where it was (class ANY).
void AnswerCache::complete_now(Inquiry& inquiry) {
  Answer& answer = inquiry.answer;
  const bool depends = answer.depends_on_client;
  const bool aa = answer.aa;
  static_cast<void>(resolve_part(inquiry.zone, inquiry.context->request.question, answer.postponed,
                                 inquiry.options, hasher_, answer));
  answer.depends_on_client |= depends;
  answer.aa = answer.aa && aa;
}

/// Finds what name errors below the closest encloser have in common, or makes it if it is worth it.
void AnswerCache::find_name_errors(Inquiry& inquiry) {
  const dns::NameView encloser = inquiry.answer.postponed.name;
  const AnswerTemplates::Key key = key_of(inquiry, AnswerTemplates::Kind::kNameError, encloser);
  inquiry.denial = templates_.find(key, place_of(inquiry, key));
  if (!inquiry.denial && templates_.wants(key)) {
    const dns::Question below{dns::Name(encloser), RRType::kA, RRClass::kIN};
    if (make_part(inquiry, below, {Part::kNameErrors, encloser, {}}))
      templates_.insert(key, part_, below);
    else
      templates_.insert_none(key);
    inquiry.denial = templates_.find(key);
  }
  if (inquiry.denial && !inquiry.denial->records) inquiry.denial.reset();
}

bool AnswerCache::write_sections(Inquiry& inquiry, dns::MessageWriter& writer) {
  if (inquiry.answer.postponed.kind == Part::kReferral) return write_referral(inquiry, writer);
  if (inquiry.denial) return write_denial(inquiry, writer);
  return render(inquiry.answer, inquiry.context->request.question, writer);
}

/// Writes the cached denial and the NSEC that covers the question's name. When both do not fit, the
/// answer is rendered whole: compression against the question's labels may make it shorter.
bool AnswerCache::write_denial(Inquiry& inquiry, dns::MessageWriter& writer) {
  const dns::Question& question = inquiry.context->request.question;
  const AnswerPart& denial = inquiry.answer.postponed;
  const auto mark = writer.mark();
  if (inquiry.denial->records->put(writer) == dns::MessageTemplate::Put::kComplete) {
    // One record may cover both the name and the wildcard.
    if (!denial.record ||
        std::ranges::equal(denial.record.relative_owner(), inquiry.denial->proof_owner))
      return false;
    if (render_covering_nsec(denial.record, inquiry.zone.apex(), denial.name, question, writer))
      return false;
    writer.roll_back(mark);
  }
  complete_now(inquiry);
  return render(inquiry.answer, question, writer);
}

/// Writes the cached referral, or renders it now; returns true when the referral was truncated.
bool AnswerCache::write_referral(Inquiry& inquiry, dns::MessageWriter& writer) {
  if (inquiry.zone.has_shared_sets() && write_shared_referral(inquiry, writer)) return false;
  const dns::Question& question = inquiry.context->request.question;
  const AnswerPart& postponed = inquiry.answer.postponed;
  const AnswerTemplates::Key key =
      key_of(inquiry, AnswerTemplates::Kind::kReferral, postponed.name);
  using Put = dns::MessageTemplate::Put;
  const auto mark = writer.mark();
  const auto found = templates_.find(key, place_of(inquiry, key));
  const Put put = !found || !found->records ? Put::kNothing : found->records->put(writer);
  if (put == Put::kComplete) return false;
  if (put == Put::kTruncated &&
      !names_below_cut_help(question.name, postponed, found->server_labels)) {
    writer.set_tc();
    return true;
  }
  writer.roll_back(mark);
  const AnswerPart cut = postponed;
  complete_now(inquiry);
  const bool truncated = render(inquiry.answer, question, writer);
  if (inquiry.answer.rcode == Rcode::kNoError && templates_.wants(key)) {
    const dns::Question at_cut{dns::Name(cut.name), RRType::kNS, RRClass::kIN};
    if (make_part(inquiry, at_cut, cut)) templates_.insert(key, part_, at_cut);
  }
  return truncated;
}

/// Writes a referral from the template of its set of servers. False if the set is not shared or not
/// cached, the referral does not fit, or a server is at or below the cut. The message is then
/// unchanged.
bool AnswerCache::write_shared_referral(const Inquiry& inquiry, dns::MessageWriter& writer) {
  const zone::ZoneView& zone = inquiry.zone;
  const AnswerPart& cut = inquiry.answer.postponed;
  const bool dnssec_ok = inquiry.options.dnssec_ok;
  // Owners of NSEC3 records are names that the compression table of a template's message lacks.
  if (dnssec_ok && zone.denial() == zone::Denial::kNsec3) return false;
  const zone::RRsetView ns = cut.record.find(RRType::kNS);
  if (!ns || !ns.is_shared() || ns.count() == 0) return false;
  const ServerSets::Key key{zone.side_index(), zone.data_version(), dnssec_ok,
                            cut.record.shared_set(RRType::kNS), ns.ttl()};
  const ServerSets::Template* const servers = find_servers(inquiry, key);
  if (servers == nullptr || !servers->records) return false;
  if (servers->has_servers_in_zone && ns.has_name_at_or_below(cut.name)) return false;
  const auto mark = writer.mark();
  const std::ptrdiff_t labels_before =
      cut.name.data() - inquiry.context->request.question.name.data();
  const dns::NameView in_message(writer.question_name().data() + labels_before, cut.name.size());
  if (servers->records->put_servers(writer, in_message) &&
      (!dnssec_ok || write_security(inquiry, writer))) {
    servers->records->put_addresses(writer);
    return true;
  }
  writer.roll_back(mark);
  return false;
}

/// The template of the cut's set of servers, made now if it is worth it; null if there is none.
const ServerSets::Template* AnswerCache::find_servers(const Inquiry& inquiry,
                                                      const ServerSets::Key& key) {
  const ServerSets::Template* const found = server_sets_.find(key);
  if (found != nullptr || !server_sets_.wants(key)) return found;
  const AnswerPart& cut = inquiry.answer.postponed;
  const dns::Question apex{dns::Name(inquiry.zone.apex()), RRType::kNS, RRClass::kIN};
  // A server at or below this very cut: another cut's referral will show the addresses' order.
  if (cut.record.find(RRType::kNS).has_name_at_or_below(cut.name)) return nullptr;
  const bool sound = make_part(inquiry, apex, {Part::kServers, cut.name, cut.record});
  return sound ? server_sets_.insert(key, part_, apex) : nullptr;
}

/// Writes DS or the proof of its absence after the NS records. False when that does not fit, or
/// when the store is damaged.
bool AnswerCache::write_security(const Inquiry& inquiry, dns::MessageWriter& writer) {
  const dns::Question& question = inquiry.context->request.question;
  const AnswerPart& cut = inquiry.answer.postponed;
  return make_part(inquiry, question, {Part::kSecurity, cut.name, cut.record}) &&
         render_authority(part_, question, writer);
}

/// Writes the answer and caches it whole, if it is not truncated.
bool AnswerCache::write_and_insert(Inquiry& inquiry, dns::MessageWriter& writer) {
  constexpr std::size_t kBehindName = 4;  // type and class
  const RequestContext& context = *inquiry.context;
  const std::size_t begin = dns::kHeaderOctets + context.request.question.name.size() + kBehindName;
  const std::size_t room = writer.room();
  WholeAnswers::Answered answered;
  answered.kind = kind_of(inquiry.zone, inquiry.answer);
  if (write_sections(inquiry, writer)) return true;
  if (!is_whole_kind(inquiry.answer)) return false;  // found while a denial was completed
  if (inquiry.denial && writer.size() > kMaxDenialOctets) return false;
  answered.zone = inquiry.zone;
  answered.version = context.batch.view.version();
  answered.records = ByteView(context.space).subspan(begin, writer.size() - begin);
  answered.counts = {writer.count(dns::Section::kAnswer), writer.count(dns::Section::kAuthority),
                     writer.count(dns::Section::kAdditional)};
  if (writer.is_crowded()) answered.only_room = static_cast<std::uint16_t>(room);
  answered.rcode = inquiry.answer.rcode;
  constexpr std::uint8_t kAa = 0x04;  // in the header's third octet
  answered.aa = (context.space[2] & kAa) != 0;
  whole_.insert(inquiry.key, inquiry.place, answered);
  return false;
}

/// Caches the result of the foreseen lookup, which was made, if it serves other names.
void AnswerCache::insert_lookup(const Inquiry& inquiry) {
  const RequestContext& context = *inquiry.context;
  const Foreseen& foreseen = *inquiry.foreseen;
  const zone::Match& match = *foreseen.match;
  const bool is_absent = foreseen.part_kind == AnswerTemplates::Kind::kNameError;
  if (!is_absent && !refers(match, foreseen.zone, context.request.question.type)) return;
  // Only a child of the apex: its lookup is that of all names below it.
  const std::size_t labels = foreseen.zone.apex().label_count() + 1;
  if (match.barrier ? match.barrier_labels != labels
                    : match.encloser_labels + (is_absent ? 1U : 0U) != labels)
    return;
  std::optional<SharedLookups::Sought> sought;
  sought_at(context, labels, sought);
  if (!sought || !lookups_.wants(*sought, foreseen.part_kind)) return;
  // Answers of the other names that do not exist are cached whole (NSEC3, a wildcard).
  if (is_absent && !templates_.has(part_key(context, foreseen), foreseen.part)) return;
  const zone::StoreView& view = context.batch.view;
  // Another zone answers for names at or below its apex.
  if (view.has_zone_at_or_below(sought->key.name)) return;
  const zone::RecordView cut = match.barrier ? match.barrier : match.exact;
  const zone::Bookmark record(foreseen.zone, is_absent ? match.nsec : cut);
  lookups_.insert(*sought, view.version(), {record, foreseen.part, foreseen.part_kind});
}

void AnswerCache::seek_lookup(const RequestContext& context,
                              std::optional<SharedLookups::Sought>& out) const noexcept {
  sought_at(context, lookups_.labels(), out);
  if (out) lookups_.fetch(*out);
}

bool AnswerCache::recall(const RequestContext& context, const SharedLookups::Sought& sought,
                         Foreseen& out) noexcept {
  const zone::StoreView& view = context.batch.view;
  const SharedLookups::Result* const found = lookups_.find(sought, view.version());
  if (found == nullptr) return false;
  const zone::ZoneView zone = view.zone_at(found->record);
  const dns::NameView child = sought.key.name;
  // Otherwise the store was damaged since.
  if (!zone || !zone.loaded() || zone.apex() != child.parent()) return false;
  const bool is_cut = found->kind == AnswerTemplates::Kind::kReferral;
  out.whole = {};
  out.zone = zone;
  out.match = nullptr;
  out.is_recalled = true;
  out.record = found->record;
  out.has_part = true;
  out.part_kind = found->kind;
  out.part = found->part;
  out.part_name = is_cut ? child : child.parent();
  templates_.fetch(out.part);
  found->record.fetch_record(zone, is_cut ? 1 : zone::RecordView::kFetchedLines);
  return true;
}

void AnswerCache::foresee(const RequestContext& context, const zone::Match& match,
                          Foreseen& out) const noexcept {
  const zone::ZoneView& zone = context.nearest_zone;
  out.zone = zone;
  out.match = &match;
  out.is_recalled = false;
  out.whole = {};
  out.has_part = name_part(match, *context.key, out);
  if (!refers(match, zone, context.request.question.type)) {
    out.whole = WholeAnswers::place_of(whole_key(context));
    whole_.fetch(out.whole);
  }
  if (!out.has_part) return;
  out.part = AnswerTemplates::place_of(part_key(context, out));
  templates_.fetch(out.part);
  match.nsec.fetch();
}

void AnswerCache::fetch(const Foreseen& foreseen) const noexcept {
  whole_.fetch_entry(foreseen.whole);
  if (foreseen.has_part) templates_.fetch_entry(foreseen.part);
}

}  // namespace pando::worker
