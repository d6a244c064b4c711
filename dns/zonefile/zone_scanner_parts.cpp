#include "dns/zonefile/zone_scanner_parts.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "dns/zonefile/zone_scanner_engine.h"
#include "dns/zonefile/zone_scanner_source.h"

namespace pando::dns {

namespace {

/// Records in sequence, from a scanning thread to the caller's thread.
class RecordBuffer {
 public:
  void put(const ScannedRecord& record) {
    const Head head{record.ttl, record.type, static_cast<std::uint16_t>(record.rdata.size()),
                    static_cast<std::uint8_t>(record.owner.size())};
    const std::size_t at = octets_.size();
    octets_.resize(at + sizeof(head) + record.owner.size() + record.rdata.size());
    std::uint8_t* out = octets_.data() + at;
    std::memcpy(out, &head, sizeof(head));
    std::memcpy(out + sizeof(head), record.owner.data(), record.owner.size());
    if (!record.rdata.empty())
      std::memcpy(out + sizeof(head) + record.owner.size(), record.rdata.data(),
                  record.rdata.size());
  }

  /// Reads the next record; false after the last one.
  bool next(ScannedRecord& record) noexcept {
    if (at_ == octets_.size()) return false;
    Head head;
    std::memcpy(&head, octets_.data() + at_, sizeof(head));
    const std::uint8_t* const owner = octets_.data() + at_ + sizeof(head);
    record.owner = NameView(owner, head.owner_octets);
    record.type = head.type;
    record.ttl = head.ttl;
    record.rdata = {owner + head.owner_octets, head.rdata_octets};
    at_ += sizeof(head) + head.owner_octets + head.rdata_octets;
    return true;
  }

  void reserve(std::size_t octets) { octets_.reserve(octets); }

 private:
  struct Head {
    Ttl ttl;
    RRType type;
    std::uint16_t rdata_octets;
    std::uint8_t owner_octets;
  };

  Bytes octets_;
  std::size_t at_ = 0;
};

/// A stretch of the file from one line's start to another's, and the result of its scan.
struct Part {
  std::string text;
  RecordBuffer records;
  ScanState end;
  bool clean = false;    ///< the part needs no text around it and no operator's attention
  bool scanned = false;  ///< guarded by PartQueue's mutex
};

/// Text read earlier, then the rest of the file or the error that ended the reading. The text just
/// before an error is lost, so that reading further could leave a hole.
class RestSource final : public ZoneSource {
 public:
  RestSource(std::deque<std::string> texts, const std::optional<Error>& error, ZoneSource& rest)
      : texts_(std::move(texts)), error_(error), rest_(rest) {}

  [[nodiscard]] std::size_t size_hint() const noexcept override { return rest_.size_hint(); }

  Result<std::size_t> read(char* out, std::size_t size) override {
    std::size_t total = 0;
    while (total < size && !texts_.empty()) {
      const std::size_t taken = texts_.front().copy(out + total, size - total, at_);
      total += taken;
      at_ += taken;
      if (at_ < texts_.front().size()) continue;
      texts_.pop_front();
      at_ = 0;
    }
    if (total == size) return total;
    if (error_) return tl::unexpected(*error_);
    Result<std::size_t> got = rest_.read(out + total, size - total);
    if (!got) return got;
    return total + *got;
  }

 private:
  std::deque<std::string> texts_;
  std::size_t at_ = 0;
  const std::optional<Error> error_;
  ZoneSource& rest_;
};

/// Cuts a source at a line that begins with neither white space nor a closing parenthesis. Such a
/// line most probably begins a record that states its owner; the scan detects a wrong cut.
class PartReader {
 public:
  PartReader(ZoneSource& source, std::size_t part_octets)
      : source_(source), part_octets_(std::max<std::size_t>(part_octets, 1)) {}

  /// Returns the next part's text; empty at the end of the file. After an error the last part has
  /// the text before the error.
  std::string next() {
    std::string text = std::move(carried_);
    carried_.clear();
    while (!ended_) {
      const std::size_t before = text.size();
      text.resize(before + part_octets_);
      const auto got = source_.read(text.data() + before, part_octets_);
      text.resize(before + (got ? *got : 0));
      ended_ = !got || *got < part_octets_;
      if (!got) error_ = got.error();
      if (ended_) break;
      const std::size_t border = last_border(text);
      if (border == 0) continue;  // a record longer than the part
      carried_ = text.substr(border);
      text.resize(border);
      break;
    }
    return text;
  }

  /// Returns the text after the parts so far.
  std::string take_carried() { return std::move(carried_); }
  /// Set when reading failed, or when the file was changed meanwhile.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

 private:
  static std::size_t last_border(std::string_view text) noexcept {
    for (std::size_t at = text.size(); at > 1;) {
      at = text.rfind('\n', at - 2);
      if (at == std::string_view::npos) return 0;
      ++at;
      if (at < text.size() &&
          std::string_view(" \t\r\n;)").find(text[at]) == std::string_view::npos)
        return at;
    }
    return 0;
  }

  ZoneSource& source_;
  const std::size_t part_octets_;
  std::string carried_;
  bool ended_ = false;
  std::optional<Error> error_;
};

/// The caller's thread, which hands the records out, and the threads that scan ahead.
class PartScan {
 public:
  PartScan(const std::string& path, const ScanOptions& options, const PartOptions& parts,
           FileSource& source, const RecordSink& sink)
      : path_(path),
        options_(options),
        part_scan_options_(options),
        sink_(sink),
        threads_wanted_(parts.threads),
        source_(source),
        reader_(source, parts.part_octets) {
    // The effect of these directives depends on the whole file; a part refuses them with an error.
    part_scan_options_.allow_include = false;
    part_scan_options_.max_generated = 0;
    part_scan_options_.max_errors = 1;
    part_scan_options_.bytes_read = nullptr;
    state_.origin = options.origin;
  }
  PartScan(const PartScan&) = delete;
  PartScan& operator=(const PartScan&) = delete;
  ~PartScan() { stop(); }

  ScanReport run() {
    assumed_ = state_;
    auto first = std::make_unique<Part>();
    first->text = reader_.next();
    if (!reader_.error()) scan(*first);
    first->scanned = true;
    parts_.push_back(std::move(first));
    while (true) {
      Part* const part = wait();
      if (part == nullptr) break;  // the end
      if (!part->clean || !is_as_assumed()) return scan_rest(0);
      if (const auto taken = hand_out(*part)) return scan_rest(*taken);
      const bool was_first = threads_.empty();
      drop_first();
      if (was_first && !start()) return scan_rest(0);
    }
    report_.content_hash = source_.content_hash();
    return std::move(report_);
  }

 private:
  /// Returns the next part, scanned; nullptr after the last.
  Part* wait() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return parts_.empty() ? ended_ : parts_.front()->scanned; });
    return parts_.empty() ? nullptr : parts_.front().get();
  }

  /// True when the text so far left the state with which the next part was scanned.
  [[nodiscard]] bool is_as_assumed() const {
    return std::ranges::equal(state_.origin.view().bytes(), assumed_.origin.view().bytes()) &&
           state_.default_ttl == assumed_.default_ttl;
  }

  /// Hands out the records; when the sink refuses one, returns the number of records before it.
  std::optional<std::uint64_t> hand_out(Part& part) {
    ScannedRecord record;
    std::uint64_t count = 0;
    for (; part.records.next(record); ++count)
      if (!sink_(record)) return count;
    report_.records += count;
    if (options_.bytes_read != nullptr)
      options_.bytes_read->fetch_add(part.text.size(), std::memory_order_relaxed);
    state_.origin = part.end.origin;
    state_.default_ttl = part.end.default_ttl;
    if (part.end.owner || !part.end.directive_behind_owner.empty())
      state_.directive_behind_owner = part.end.directive_behind_owner;
    // A part of comments leaves owner and TTL unchanged.
    if (part.end.owner) state_.owner = part.end.owner;
    if (part.end.last_ttl) state_.last_ttl = part.end.last_ttl;
    state_.line += part.end.line - 1;
    return std::nullopt;
  }

  void drop_first() {
    const std::lock_guard lock(mutex_);
    parts_.pop_front();
    room_.notify_one();
  }

  /// Begins to scan after the first part; false when no thread can be started.
  bool start() {
    assumed_.origin = state_.origin;
    assumed_.default_ttl = state_.default_ttl;
    try {
      for (unsigned i = 0; i < threads_wanted_; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The threads started so far suffice.
    }
    return !threads_.empty();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock,
                 [this] { return stopping_ || ended_ || parts_.size() < 2 * threads_wanted_ + 1; });
      if (stopping_ || ended_) return;
      auto next = std::make_unique<Part>();
      next->text = reader_.next();
      if (next->text.empty()) {
        ended_ = true;
        room_.notify_all();
        ready_.notify_one();
        return;
      }
      Part& part = *parts_.emplace_back(std::move(next));
      const bool failed = reader_.error().has_value();
      lock.unlock();
      if (!failed) scan(part);
      lock.lock();
      part.scanned = true;
      ready_.notify_one();
    }
  }

  void scan(Part& part) const {
    part.records.reserve(part.text.size());
    part.end = assumed_;
    part.end.line = 1;
    const ScanReport report = scan_zone_range(part.text, path_, part_scan_options_, part.end,
                                              [&part](const ScannedRecord& record) -> Status {
                                                part.records.put(record);
                                                return {};
                                              });
    part.clean = report.ok() && report.warnings.empty();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  /// Scans the rest from the first part on in one pass, without its first `taken` records.
  ScanReport scan_rest(std::uint64_t taken) {
    stop();
    std::deque<std::string> texts;
    for (auto& part : parts_) texts.push_back(std::move(part->text));
    parts_.clear();
    texts.push_back(reader_.take_carried());
    RestSource rest(std::move(texts), reader_.error(), source_);
    const RecordSink sink = [this, taken](const ScannedRecord& record) mutable -> Status {
      if (taken == 0) return sink_(record);
      --taken;
      return {};
    };
    ZoneScanner scanner(options_, state_, sink);
    scanner.scan_rest(path_, source_.identity(), rest);
    ScanReport report = scanner.take_report();
    report.records += report_.records;
    report.content_hash = scanner.content_hash(source_.content_hash());
    report.has_included = scanner.has_included();
    return report;
  }

  const std::string& path_;
  const ScanOptions& options_;
  ScanOptions part_scan_options_;
  const RecordSink& sink_;
  const unsigned threads_wanted_;
  FileSource& source_;
  ScanState state_;    // state left by the text handed out so far
  ScanState assumed_;  // start state of parts; constant while threads run
  ScanReport report_;

  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable ready_;
  PartReader reader_;                        // guarded
  std::deque<std::unique_ptr<Part>> parts_;  // guarded; read but not handed out, in order
  bool ended_ = false;                       // guarded; all text was read
  bool stopping_ = false;                    // guarded
  std::vector<std::thread> threads_;
};

}  // namespace

ScanReport scan_zone_file_in_parts(const std::string& path, const ScanOptions& options,
                                   const PartOptions& parts, const RecordSink& sink) {
  FileSource source;
  if (parts.threads == 0 || !source.open(path) || source.size_hint() < parts.least_bytes)
    return scan_zone_file(path, options, sink);
  return PartScan(path, options, parts, source, sink).run();
}

}  // namespace pando::dns
