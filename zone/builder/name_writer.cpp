#include "zone/builder/name_writer.h"

#include "zone/draft/name_rules.h"

namespace pando::zone {

void add_record(NameDraft& name, const CollectedRecord& record) {
  const Placed placed = place(record.type(), record.rdata());
  RRsetDraft& rrset = name.at(placed.set);
  const bool first =
      placed.is_signature ? rrset.rdatas.empty() && rrset.signatures.empty() : rrset.rdatas.empty();
  if (first) rrset.ttl = record.ttl();
  (placed.is_signature ? rrset.signatures : rrset.rdatas).push_back(placed.octets);
}

void add_set(RRsetDraft& to, const RRsetDraft& from) {
  const bool first = to.rdatas.empty() && (to.signatures.empty() || !from.rdatas.empty());
  if (first) to.ttl = from.ttl;
  to.rdatas.insert(to.rdatas.end(), from.rdatas.begin(), from.rdatas.end());
  to.signatures.insert(to.signatures.end(), from.signatures.begin(), from.signatures.end());
}

NameWriter::NameWriter(dns::NameView apex, shm::Transaction& transaction, const DataLimits& limits)
    : apex_(apex),
      transaction_(transaction),
      limits_(limits),
      shared_(transaction),
      built_(std::make_shared<BuiltZone>()) {}

void NameWriter::begin(ByteView labels) {
  name_.labels = labels;
  name_.rrsets.clear();
  old_ref_ = 0;
  old_records_ = 0;
}

Status NameWriter::add_written(std::uint32_t ref) {
  const RecordView view = record_view(transaction_.window(), ref, apex_);
  if (!view) return fail(Errc::kCorrupt, "name record is damaged");
  NameDraft old = decode_record(view);
  old_ref_ = ref;
  old_records_ = old.record_count();
  if (name_.rrsets.empty()) {
    name_ = std::move(old);
    return {};
  }
  for (const RRsetDraft& set : old.rrsets) add_set(name_.at(set.type), set);
  name_.whole_names = std::move(old.whole_names);
  return {};
}

Status NameWriter::check() {
  for (RRsetDraft& rrset : name_.rrsets) normalise(rrset);
  if (auto ok = check_name(name_, apex_); !ok) return ok;
  return check_limits(NameDraft{}, name_, limits_, apex_);
}

/// Shares a delegation's name servers with other delegations that have the same ones.
Status NameWriter::share() {
  RRsetDraft* rrset = name_.labels.empty() ? nullptr : name_.find(kSharedType);
  if (rrset == nullptr || rrset->rdatas.empty() || !rrset->signatures.empty()) return {};
  if (has_relative_form(*rrset, {name_.labels, apex_})) return {};
  pack_data(*rrset, packed_);
  auto ref = shared_.place(packed_);
  if (!ref) return pass(ref);
  if (*ref != 0) refer_to_shared(transaction_.window(), *rrset, *ref);
  return {};
}

Result<std::uint32_t> NameWriter::write() {
  if (auto placed = share(); !placed) return pass(placed);
  auto ref = write_record(transaction_, apex_, name_);
  if (!ref) return ref;
  built_->record_count += name_.record_count() - old_records_;
  if (old_ref_ == 0) ++built_->name_count;
  if (name_.labels.empty()) built_->take_apex(name_, *ref);
  if (old_ref_ != 0) release_record(transaction_, old_ref_);
  return ref;
}

std::shared_ptr<BuiltZone> NameWriter::take() {
  built_->shared = shared_.pages();
  return std::move(built_);
}

}  // namespace pando::zone
