#include "manager/zone_file.h"

#include <sys/stat.h>

#include "dns/zone_scanner.h"
#include "manager/soa.h"

namespace pando::manager {

namespace {

using Problem = tl::unexpected<ZoneProblems>;

Problem problem(std::vector<std::string> lines) { return Problem(ZoneProblems{std::move(lines)}); }

dns::ScanOptions options_for(const dns::Name& apex) {
  dns::ScanOptions options;
  options.origin = apex;
  return options;
}

/// The serial of the file's SOA, without reading further than that.
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
  Builder(shm::Store& store, const dns::Name& apex, const std::string& path)
      : store_(store), apex_(apex), path_(path), builder_(apex) {}

  Result<BuiltZone, ZoneProblems> run(const JournalHistory* history) {
    const auto source = path_.empty() ? std::nullopt : stat_source(path_);
    if (history != nullptr && history->knows(apex_)) {
      auto found = history->replay(apex_, source ? serial_of_file(path_, apex_) : std::nullopt);
      if (!found) return problem({fmt::format("journal: {}", found.error().text)});
      replay_ = std::move(*found);
      has_updates_ = true;
    }
    if (replay_.from_snapshot) {
      if (auto added = add_snapshot(*history); !added) return problem({added.error().text});
    } else if (auto lines = add_file(); !lines.empty()) {
      return problem(std::move(lines));
    }
    if (auto added = add_updates(); !added) return problem({added.error().text});
    return finish(source.value_or(zone::ZoneSource{}));
  }

 private:
  Status add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
    if (replay_.net.replaces(owner, type, rdata)) return {};
    return builder_.add(owner, type, ttl, rdata);
  }

  std::vector<std::string> add_file() {
    dns::ScanReport report =
        dns::scan_zone_file(path_, options_for(apex_), [this](const dns::ScannedRecord& record) {
          return add(record.owner, record.type, record.ttl, record.rdata);
        });
    warnings_ = std::move(report.warnings);
    return std::move(report.errors);
  }

  Status add_snapshot(const JournalHistory& history) {
    return history.for_each_base_record(apex_, [this](const zone::Record& record) {
      return add(record.owner, record.type, record.ttl, record.rdata);
    });
  }

  Status add_updates() {
    return replay_.net.for_each_added([this](const zone::Record& record) {
      return builder_.add(record.owner, record.type, record.ttl, record.rdata);
    });
  }

  Result<BuiltZone, ZoneProblems> finish(const zone::ZoneSource& source) {
    const std::uint64_t records = builder_.record_count();
    shm::Transaction transaction = store_.begin_private();
    // What was acknowledged found room once, though not in chunks filled like these.
    if (has_updates_) transaction.use_reserve();
    auto built = builder_.finish(transaction);
    if (!built)
      return problem(
          {fmt::format("{}: {}", path_.empty() ? to_text(apex_) : path_, built.error().text)});
    return BuiltZone{std::move(transaction),
                     std::move(*built),
                     source,
                     records,
                     replay_.applied,
                     replay_.skipped,
                     replay_.from_snapshot,
                     std::move(warnings_)};
  }

  shm::Store& store_;
  const dns::Name& apex_;
  const std::string& path_;
  zone::ZoneBuilder builder_;
  JournalHistory::Replay replay_;
  bool has_updates_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace

std::optional<zone::ZoneSource> stat_source(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  zone::ZoneSource source;
  source.file_mtime_ns =
      std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  source.file_octets = static_cast<std::uint64_t>(status.st_size);
  return source;
}

Result<BuiltZone, ZoneProblems> build_zone(shm::Store& store, const dns::Name& apex,
                                           const std::string& path, const JournalHistory* history) {
  return Builder(store, apex, path).run(history);
}

}  // namespace pando::manager
