#include "manager/merge/zone_recovery.h"

#include "manager/merge/file_merge.h"
#include "manager/support/soa.h"

namespace pando::manager {

bool ZoneRecovery::take(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
  // The caller passes a second SOA to the builder, which refuses it.
  if (type == dns::RRType::kSOA) {
    if (soa_) return false;
    soa_ = {dns::Name(owner), type, ttl, Bytes(rdata.begin(), rdata.end())};
    return true;
  }
  const SetKey set{owner, type};
  if (updates_.find(set) == updates_.end()) return false;
  // RFC 2181 §5.2: a set has one TTL. As in other places, the file's first record of the set
  // decides.
  const auto first = held_.find(set);
  held_.try_emplace({owner, type, rdata}, first == held_.end() ? ttl : first->second);
  return true;
}

std::optional<dns::Ttl> ZoneRecovery::ttl_in_file(const RecordKey& key) const {
  const auto found = held_.find(key);
  return found == held_.end() ? std::nullopt : std::optional(found->second);
}

void ZoneRecovery::serve(const RecordKey& key, std::optional<dns::Ttl> file,
                         std::optional<dns::Ttl> live) {
  if (live) outcome_.records.push_back(key.record(*live));
  if (file != live) changes_.insert_or_assign(key, RecordChange{file, live});
}

/// A record added by an update stays, and a record removed by an update stays away. A record whose
/// TTL an update changed goes if the file no longer has the record. While any record of an update
/// remains, the set keeps the update's TTL.
void ZoneRecovery::recover_set(const Updates& set) {
  const auto stays = [](const RecordChange& entry, std::optional<dns::Ttl> file) {
    return entry.after && (file || !entry.before);
  };
  std::optional<dns::Ttl> updated;
  for (auto at = set.first; at != set.second; ++at)
    if (stays(at->second, ttl_in_file(at->first))) updated = at->second.after;
  for (auto at = set.first; at != set.second; ++at) {
    const auto file = ttl_in_file(at->first);
    serve(at->first, file, stays(at->second, file) ? updated : std::nullopt);
  }
  serve_others(set, updated);
}

/// Where the file changed, the file alone decides (see is_signers()).
void ZoneRecovery::recover_signers_set(const Updates& set) {
  for (auto at = set.first; at != set.second; ++at) {
    const auto file = ttl_in_file(at->first);
    const bool edited = file.has_value() != at->second.before.has_value();
    serve(at->first, file, edited ? file : at->second.after);
  }
  serve_others(set, std::nullopt);
}

/// Serves the set's records that no update touched.
void ZoneRecovery::serve_others(const Updates& set, std::optional<dns::Ttl> updated) {
  const RecordKey& any = set.first->first;
  const auto [first, last] = held_.equal_range(SetKey{any.owner(), any.type()});
  for (auto at = first; at != last; ++at)
    if (!updates_.contains(at->first)) serve(at->first, at->second, updated.value_or(at->second));
}

/// The SOA of an update wins if the update changed more than the serial; the file's serial stays.
void ZoneRecovery::recover_soa(const Updates& set) {
  if (!soa_) return;
  for (auto at = set.first; at != set.second; ++at) {
    if (!at->second.after) continue;
    const RecordKey file(soa_->owner, soa_->type, soa_->rdata);
    const dns::Serial serial = soa_serial(soa_->rdata);
    changes_.insert_or_assign(file, RecordChange{soa_->ttl, std::nullopt});
    const auto [entry, fresh] = changes_.try_emplace(at->first, RecordChange{std::nullopt, {}});
    entry->second.after = at->second.after;
    if (entry->second.before == entry->second.after) changes_.erase(entry);
    soa_ = at->first.record(*at->second.after);
    set_soa_serial(soa_->rdata, serial);
    return;
  }
}

ZoneRecovery::Outcome ZoneRecovery::result() && {
  for (auto at = updates_.cbegin(); at != updates_.cend();) {
    const RecordKey& key = at->first;
    const Updates set = std::as_const(updates_).equal_range(SetKey{key.owner(), key.type()});
    if (key.type() == dns::RRType::kSOA)
      recover_soa(set);
    else if (is_signers(key.type()))
      recover_signers_set(set);
    else
      recover_set(set);
    at = set.second;
  }
  outcome_.soa = std::move(soa_);
  outcome_.dynamic_changes.assign(std::move(changes_));
  return std::move(outcome_);
}

dns::Serial recovered_serial(const MergeBase& state, dns::Serial file_serial,
                             const zone::ZoneFileInfo& source, RecoveredZone zone) {
  const dns::Serial last = *state.serial;
  if (state.is_merged(file_serial, source)) return last;
  if (!file_serial.ahead_of(last)) return zone.signed_soa ? last : last.next();
  return zone.as_file || zone.signed_soa ? file_serial : file_serial.next();
}

}  // namespace pando::manager
