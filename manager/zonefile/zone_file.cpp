#include "manager/zonefile/zone_file.h"

#include <algorithm>
#include <thread>

#include "dns/rdata/rdata.h"
#include "dns/zonefile/zone_scanner.h"
#include "dns/zonefile/zone_scanner_engine.h"
#include "dns/zonefile/zone_scanner_parts.h"
#include "manager/merge/merge_base.h"
#include "manager/merge/zone_recovery.h"
#include "manager/support/soa.h"
#include "manager/zonefile/export_file.h"
#include "zone/builder/broken_rules.h"
#include "zone/builder/zone_builder.h"
#include "zone/read/each_record.h"

namespace pando::manager {

namespace {

using Problem = tl::unexpected<ZoneProblems>;

Problem problem(std::vector<std::string> lines) { return Problem(ZoneProblems{std::move(lines)}); }

dns::ScanOptions options_for(const dns::Name& apex) {
  dns::ScanOptions options;
  options.origin = apex;
  return options;
}

/// Building takes at least as long as scanning, so more scan threads would only wait for the
/// builder.
dns::PartOptions part_options() {
  static const unsigned processors = std::thread::hardware_concurrency();
  dns::PartOptions parts;
  parts.threads = std::clamp(processors, 1U, 4U) - 1;
  return parts;
}

dns::ScanReport scan(const std::string& path, const dns::Name& apex, std::uint64_t bytes,
                     LoadProgress* progress, const dns::RecordSink& sink) {
  dns::ScanOptions options = options_for(apex);
  if (progress != nullptr) {
    progress->begin(Progress::Phase::kReading, bytes);
    options.bytes_read = &progress->done();
  }
  const dns::PartOptions parts = part_options();
  return bytes < parts.least_bytes ? dns::scan_zone_file(path, options, sink)
                                   : dns::scan_zone_file_in_parts(path, options, parts, sink);
}

/// The serial of the file's SOA; reads no further than that record.
std::optional<dns::Serial> serial_of_file(const std::string& path, const dns::Name& apex) {
  std::optional<dns::Serial> serial;
  dns::ScanOptions options = options_for(apex);
  options.max_errors = 1;  // the error below ends the scan
  dns::scan_zone_file(path, options, [&](const dns::ScannedRecord& record) -> Status {
    if (record.type != dns::RRType::kSOA) return {};
    serial = soa_serial(record.rdata);
    return fail(Errc::kExists, "found");
  });
  return serial;
}

class Builder {
 public:
  Builder(shm::Transaction& transaction, const dns::Name& apex, const std::string& path,
          LoadProgress* progress)
      : apex_(apex),
        path_(path),
        progress_(progress),
        giving_up_(progress),
        transaction_(transaction),
        builder_(apex, transaction_) {}

  Result<ZoneFromFile, ZoneProblems> run(dns::FileSource& file) {
    const dns::ScanOptions options = options_for(apex_);
    const dns::RecordSink sink = record_sink();
    dns::ScanState start;
    start.origin = apex_;
    dns::ZoneScanner scanner(options, start, sink);
    // before reading: the stamp depends on the present clock
    zone::ZoneFileInfo source = source_from(file.status());
    scanner.scan_rest(path_, file.identity(), file);
    if (auto lines = take(scanner.take_report()); !lines.empty()) return problem(std::move(lines));
    add_content(source, {scanner.content_hash(file.content_hash()), scanner.has_included()});
    return finish(source);
  }

  Result<ZoneFromFile, ZoneProblems> run(const ZoneHistory* history) {
    auto source = path_.empty() ? std::nullopt : stat_source(path_);
    is_doubtful_ = history != nullptr && !history->is_copy &&
                   (history->may_have_updates || history->journal.knows(apex_)) &&
                   history->journal.may_have_lost(apex_);
    const bool has_updates =
        is_doubtful_ || (history != nullptr && history->journal.knows(apex_));
    if (has_updates)
      if (auto chosen = choose(*history, source); !chosen)
        return Problem({{fmt::format("journal: {}", chosen.error().text)}, true});
    // Acknowledged records fitted into the store before, though into chunks filled differently, so
    // the reserve may be used.
    if (recovery_) transaction_.use_reserve();
    if (!has_file_data()) {
      if (auto added = withheld_ ? add_withheld() : add_snapshot(history->journal); !added)
        return Problem({{added.error().text}, added.error().code == Errc::kIo});
    } else if (auto lines = add_file(source ? source->file_bytes : 0); !lines.empty()) {
      return problem(std::move(lines));
    }
    if (source && has_file_data()) add_content(*source, content_);
    if (recovery_)
      if (auto added = add_updates(source.value_or(zone::ZoneFileInfo{}), *history); !added)
        return problem({added.error().text});
    return finish(source_of(source));
  }

 private:
  /// Chooses the data to which the journal's updates are applied, and how.
  Status choose(const ZoneHistory& history, std::optional<zone::ZoneFileInfo>& source) {
    if (is_doubtful_ && history.withheld)
      if (auto chosen = choose_withheld(history); !chosen || withheld_) return chosen;
    return choose_file(history, source);
  }

  /// Updates are merged with the file by dynamic changes, or replayed by serials.
  Status choose_file(const ZoneHistory& history, std::optional<zone::ZoneFileInfo>& source) {
    if (history.is_copy) return choose_for_copy(history, source);
    if (auto taken = take_merge_base(history); !taken) return taken;
    if (!path_.empty() && state_.source) {
      // Finishes an interrupted export: `FILE.export` is the merge base then.
      auto finished = finish_export(native_files(), path_, *state_.source);
      if (!finished) return pass(finished);
      if (*finished) source = stat_source(path_);
    }
    becomes_primary_ = source && state_.own;
    // The hash is needed before the scan, because it decides how the file is used.
    if (becomes_primary_) add_content(*source, read_content(path_));
    const auto serial = source ? serial_of_file(path_, apex_) : std::nullopt;
    if (becomes_primary_) state_.become_primary(serial && state_.is_base_file(*serial, *source));
    merges_file_ = source && state_.serial && state_.dynamic_changes.known();
    if (!merges_file_) return replay(history, serial);
    recovery_.emplace(state_.dynamic_changes.entries());
    return {};
  }

  /// Nobody edits a copy, so serials tell all. The merge base, for which each record of the zone is
  /// read once more, is asked for only if source_of() needs it.
  Status choose_for_copy(const ZoneHistory& history,
                         const std::optional<zone::ZoneFileInfo>& source) {
    const auto serial = source ? serial_of_file(path_, apex_) : std::nullopt;
    if (auto replayed = replay(history, serial); !replayed) return replayed;
    return source && replay_.from_snapshot ? take_merge_base(history) : Status();
  }

  [[nodiscard]] JournalHistory::Gaps gaps() const noexcept {
    return is_doubtful_ ? JournalHistory::Gaps::kPassed : JournalHistory::Gaps::kUnknown;
  }

  Status take_merge_base(const ZoneHistory& history) {
    auto state = history.journal.merge_base(apex_, history.up_to, gaps());
    if (!state) return pass(state);
    state_ = std::move(*state);
    return {};
  }

  Status replay(const ZoneHistory& history, std::optional<dns::Serial> file_serial) {
    auto found = history.journal.replay(apex_, file_serial, history.up_to, gaps());
    if (!found) return pass(found);
    replay_ = std::move(*found);
    recovery_.emplace(replay_.net.entries());
    return {};
  }

  /// The journal's snapshot may have later data; then nothing is chosen.
  Status choose_withheld(const ZoneHistory& history) {
    const zone::ZoneView& data = history.withheld->data;
    auto found = history.journal.replay(apex_, data.serial(), history.up_to,
                                        JournalHistory::Gaps::kPassed);
    if (!found) return pass(found);
    if (found->from_snapshot) return {};
    is_doubtful_ = history.journal.may_have_lost_behind(apex_, history.withheld->position);
    withheld_ = data;
    replay_ = std::move(*found);
    recovery_.emplace(replay_.net.entries());
    return {};
  }

  Status add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
    if (giving_up_.at_next_record()) return fail(Errc::kExists, kGivenUp);
    if (recovery_ && recovery_->take(owner, type, ttl, rdata)) return {};
    return put(owner, type, ttl, rdata);
  }

  Status put(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
    if (type == dns::RRType::kRRSIG && rdata.size() >= sizeof(dns::RRType))
      signed_soa_ = signed_soa_ || dns::rrsig_covered(rdata) == dns::RRType::kSOA;
    return builder_.add(owner, type, ttl, rdata);
  }

  std::vector<std::string> add_file(std::uint64_t bytes) {
    return take(scan(path_, apex_, bytes, progress_, record_sink()));
  }

  dns::RecordSink record_sink() {
    return [this](const dns::ScannedRecord& record) {
      return add(record.owner, record.type, record.ttl, record.rdata);
    };
  }

  /// Takes over a scan's report and returns its errors.
  std::vector<std::string> take(dns::ScanReport&& report) {
    warnings_ = std::move(report.warnings);
    content_ = {report.content_hash, report.has_included};
    return std::move(report.errors);
  }

  Status add_withheld() {
    ProgressCount count(Progress::Phase::kBuilding, withheld_.record_count());
    return zone::for_each_record(
        withheld_, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
          count.add();
          return add(owner, type, ttl, rdata);
        });
  }

  Status add_snapshot(const JournalHistory& history) {
    ProgressCount count(Progress::Phase::kBuilding, 0);
    return history.for_each_base_record(apex_, [this, &count](const zone::Record& record) {
      count.add();
      return add(record.owner, record.type, record.ttl, record.rdata);
    });
  }

  /// For a zone of which records may be lost. Other data have had each serial that the lost records
  /// led to, so the zone takes one that nobody has seen. A signed SOA keeps its serial.
  dns::Serial sure_serial(const JournalHistory& journal, dns::Serial serial, dns::Serial file) {
    const dns::Serial highest = file.ahead_of(serial) ? file : serial;
    const dns::Serial unused = signed_soa_ ? serial : journal.unused_serial(apex_, highest);
    warnings_.push_back(
        fmt::format("records of the journal are lost: the zone has what is left, {} records by "
                    "update, and serial {}",
                    updated_, unused.value));
    return unused;
  }

  Status add_updates(const zone::ZoneFileInfo& source, const ZoneHistory& history) {
    auto outcome = std::move(*recovery_).result();
    for (const zone::Record& record : outcome.records)
      if (auto added = put(record.owner, record.type, record.ttl, record.rdata); !added)
        return added;
    if (!outcome.soa) return {};  // the builder reports the missing SOA
    zone::Record& soa = *outcome.soa;
    const dns::Serial file = soa_serial(soa.rdata);
    dns::Serial serial = replay_.serial.value_or(file);
    if (merges_file_) {
      serial =
          recovered_serial(state_, file, source, {outcome.dynamic_changes.empty(), signed_soa_});
      if (signed_soa_ && state_.file_serial && !(file == *state_.file_serial) &&
          !file.ahead_of(*state_.serial))
        warnings_.push_back(fmt::format(
            "the file's serial {} is not ahead of {}, which the zone keeps, as its SOA is signed: "
            "secondaries do not see what the file changed",
            file.value, serial.value));
    }
    updated_ = outcome.dynamic_changes.entries().size();
    if (is_doubtful_) serial = sure_serial(history.journal, serial, file);
    set_soa_serial(soa.rdata, serial);
    // Without this a start from the same image would not know of the raised serial.
    if (withheld_ && is_doubtful_)
      journal_.push_back(source_entry(apex_, serial, withheld_.source()));
    if (!history.is_copy && has_file_data())
      add_journal_records(file, serial, source, outcome.dynamic_changes);
    return builder_.add(soa.owner, soa.type, soa.ttl, soa.rdata);
  }

  /// Queues the journal records from which later updates continue; none if nothing changed.
  void add_journal_records(dns::Serial file, dns::Serial serial, const zone::ZoneFileInfo& source,
                           const DynamicChanges& changes) {
    const bool as_before = merges_file_ && !is_doubtful_ && !becomes_primary_ &&
                           state_.is_merged(file, source) &&
                           state_.dynamic_changes.entries() == changes.entries();
    if (!as_before) journal_.push_back(dynamic_changes_entry(apex_, file, serial, changes));
    if (!as_before || !state_.source) journal_.push_back(source_entry(apex_, serial, source));
  }

  /// False: other data take the place of the file's.
  [[nodiscard]] bool has_file_data() const noexcept {
    return !withheld_ && !replay_.from_snapshot;
  }

  /// State of the file that agrees with the zone's data. A zone built from the journal's snapshot,
  /// or from withheld data, agrees with the merge base, if that file is still there. Any other file
  /// is left for a reload to compare.
  [[nodiscard]] zone::ZoneFileInfo source_of(
      const std::optional<zone::ZoneFileInfo>& source) const {
    if (!source) return {};
    const auto base = withheld_ ? std::optional(withheld_.source()) : state_.source;
    if (has_file_data() || !base) return *source;
    const FileCheck found = check_file(path_, *base);
    const bool is_there =
        found.kind == FileCheck::Kind::kSame || found.kind == FileCheck::Kind::kTouched;
    return is_there ? found.now : zone::ZoneFileInfo{};
  }

  Result<ZoneFromFile, ZoneProblems> finish(const zone::ZoneFileInfo& source) {
    if (giving_up_.now()) return problem({kGivenUp});
    const std::uint64_t records = builder_.record_count();
    auto built = builder_.finish();
    if (!built) {
      if (updated_ == 0 && !path_.empty()) return Problem(problems_of(path_, apex_, built.error()));
      return problem({fmt::format(
          "{}: {}{}", path_.empty() ? to_text(apex_) : path_,
          updated_ == 0 ? "" : "beside the records that came by update: ", built.error().text)});
    }
    return ZoneFromFile{std::move(*built),
                     source,
                     records,
                     replay_.applied,
                     replay_.skipped,
                     replay_.primary_serial,
                     updated_,
                     std::move(journal_),
                     std::move(warnings_)};
  }

  const dns::Name& apex_;
  const std::string& path_;
  LoadProgress* progress_;
  GivingUp giving_up_;
  shm::Transaction& transaction_;
  zone::ZoneBuilder builder_;
  MergeBase state_;                // only for zones that the journal knows
  JournalHistory::Replay replay_;  // used if the updates are replayed by serials
  zone::ZoneView withheld_;        // the base of that, in place of a file
  bool merges_file_ = false;
  bool is_doubtful_ = false;      // records of the zone may be lost
  bool becomes_primary_ = false;  // the zone came from transfers until now
  bool signed_soa_ = false;
  FileContent content_;  // the scanned file's hash
  std::optional<ZoneRecovery> recovery_;
  std::vector<JournalEntry> journal_;
  std::size_t updated_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<ZoneFromFile, ZoneProblems> build_zone(shm::Transaction& transaction, const dns::Name& apex,
                                           const std::string& path, const ZoneHistory* history,
                                           LoadProgress* progress) {
  return Builder(transaction, apex, path, progress).run(history);
}

Result<ZoneFromFile, ZoneProblems> build_zone(shm::Transaction& transaction, const dns::Name& apex,
                                           const std::string& path, dns::FileSource& file) {
  return Builder(transaction, apex, path, nullptr).run(file);
}

ZoneProblems problems_of(const std::string& path, const dns::Name& apex, const Error& error) {
  if (Progress* const progress = Progress::here()) progress->begin(Progress::Phase::kChecking, 0);
  if (error.code == Errc::kInvalid)
    if (auto lines = zone::find_broken_rules(path, options_for(apex)); !lines.empty())
      return {std::move(lines)};
  return {{fmt::format("{}: {}", path, error.text)}};
}

Result<std::optional<ComparedFile>, ZoneProblems> compare_file(const zone::ZoneView& live,
                                                               const dns::Name& apex,
                                                               const std::string& path,
                                                               LoadProgress* progress) {
  ComparedFile file;
  file.source = stat_source(path).value_or(zone::ZoneFileInfo{});
  file.comparison = std::make_unique<zone::Comparison>(live);
  bool is_too_much = false;
  GivingUp giving_up(progress);
  auto report =
      scan(path, apex, file.source.file_bytes, progress,
           [&](const dns::ScannedRecord& record) -> Status {
             if (giving_up.at_next_record()) return fail(Errc::kExists, kGivenUp);
             is_too_much = is_too_much || file.comparison->is_too_much();
             if (is_too_much) return fail(Errc::kFull, "too much is new");
             return file.comparison->add(record.owner, record.type, record.ttl, record.rdata);
           });
  if (giving_up.now()) return problem({kGivenUp});
  if (is_too_much) return std::nullopt;
  if (!report.errors.empty()) return problem(std::move(report.errors));
  file.warnings = std::move(report.warnings);
  add_content(file.source, {report.content_hash, report.has_included});
  auto soa = file.comparison->finish();
  if (!soa && soa.error().code != Errc::kInvalid) return std::nullopt;
  if (!soa) return Problem(problems_of(path, apex, soa.error()));
  file.soa = std::move(*soa);
  return std::optional<ComparedFile>(std::move(file));
}

}  // namespace pando::manager
