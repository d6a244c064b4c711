#include "zone/dnssec/zone_verification.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/progress.h"
#include "zone/dnssec/denial_verifier.h"
#include "zone/dnssec/fault_list.h"
#include "zone/dnssec/zonemd_check.h"

namespace pando::zone {

using dns::RRType;

namespace {

/// Names that go to a thread together: some hundred signatures, milliseconds of work.
constexpr std::size_t kBatchNames = 128;
/// Batches that wait, for each thread: the walk over the names is far ahead otherwise.
constexpr std::size_t kWaitingBatches = 4;

struct Batch {
  std::uint64_t first_place = 0;  // of names[0]; those after it follow
  std::vector<PlacedName> names;
};

/// The work of one thread: signatures, and NSEC3 records of names.
class Verifier {
 public:
  Verifier(const ZoneView& zone, const VerifyOptions& options, bool signatures)
      : sets_(zone, options.now, options.one_in),
        hashed_(zone),
        has_nsec3_(zone.denial() == Denial::kNsec3),
        signatures_(signatures) {}

  void take(const Batch& batch) {
    std::uint64_t place = batch.first_place;
    for (const PlacedName& name : batch.names) take(name, place++);
  }
  [[nodiscard]] SetVerifier& sets() noexcept { return sets_; }
  [[nodiscard]] Nsec3Names& hashed() noexcept { return hashed_; }
  [[nodiscard]] FaultList& faults() noexcept { return faults_; }

 private:
  void take(const PlacedName& name, std::uint64_t place) {
    if (name.place != Place::kEmpty && signatures_) check_sets(name, place);
    // Owners of NSEC3 records have no NSEC3 record of their own (RFC 5155 §7.1).
    if (!has_nsec3_ || is_hashed_owner(name) || !exists(name)) return;
    note(hashed_.check(name), place);
  }
  void check_sets(const PlacedName& name, std::uint64_t place) {
    if (name.place == Place::kOccluded) return;
    name.record.for_each_rrset([&](const RRsetView& set) {
      if (set.count() == 0 || set.type() == RRType::kRRSIG) return;
      // RFC 4035 §2.2: at a delegation only DS and NSEC belong to this zone.
      const bool authoritative = name.place == Place::kAuthoritative ||
                                 set.type() == RRType::kDS || set.type() == RRType::kNSEC;
      if (authoritative) note(sets_.check(name.owner, set), place);
    });
  }
  static bool is_hashed_owner(const PlacedName& name) noexcept {
    return name.record && name.record.find(RRType::kNSEC3).count() != 0;
  }
  void note(std::string fault, std::uint64_t place) {
    if (!fault.empty()) faults_.add(place, std::move(fault));
  }

  SetVerifier sets_;
  Nsec3Names hashed_;
  bool has_nsec3_;
  bool signatures_;
  FaultList faults_;
};

/// Passes batches to verifiers in threads of their own; without threads it verifies them itself.
class Crew {
 public:
  Crew(const ZoneView& zone, const VerifyOptions& options, bool signatures) {
    const unsigned count = std::max(options.threads, 1U);
    for (unsigned i = 0; i < count; ++i)
      verifiers_.push_back(std::make_unique<Verifier>(zone, options, signatures));
    if (options.threads == 0) return;
    for (const auto& verifier : verifiers_)
      if (!begin_thread(*verifier)) return;  // the running threads, or the caller, do the work
  }
  ~Crew() { finish(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void give(Batch&& batch) {
    if (threads_.empty()) return verifiers_.front()->take(batch);
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] { return waiting_.size() < kWaitingBatches * threads_.size(); });
    waiting_.push_back(std::move(batch));
    has_work_.notify_one();
  }
  void finish() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    has_work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  [[nodiscard]] std::vector<std::unique_ptr<Verifier>>& verifiers() noexcept { return verifiers_; }

 private:
  /// False: the system has no more threads for this process.
  bool begin_thread(Verifier& verifier) {
    try {
      threads_.emplace_back([this, one = &verifier] { work(*one); });
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }
  void work(Verifier& verifier) {
    for (;;) {
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Batch batch = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      has_room_.notify_one();
      verifier.take(batch);
    }
  }

  std::vector<std::unique_ptr<Verifier>> verifiers_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable has_work_, has_room_;
  std::deque<Batch> waiting_;
  bool ended_ = false;
};

/// Number of labels that two names have in common at their ends.
std::size_t common_labels(dns::NameView a, dns::NameView b) noexcept {
  const std::size_t count = std::min(a.label_count(), b.label_count());
  dns::NameView end_of_a = a.ancestor(a.label_count() - count);
  dns::NameView end_of_b = b.ancestor(b.label_count() - count);
  std::size_t common = count;
  while (common > 0 && !(end_of_a == end_of_b)) {
    end_of_a = end_of_a.parent();
    end_of_b = end_of_b.parent();
    --common;
  }
  return common;
}

/// The walk over all names: finds each name's place and the empty non-terminals, and follows the
/// chains.
class Walk {
 public:
  Walk(const ZoneView& zone, Crew& crew, FaultList& faults)
      : zone_(zone),
        crew_(crew),
        nsec_(zone, faults),
        nsec3_(zone, faults),
        denial_(zone.denial()),
        last_(zone.apex()),
        last_secure_(zone.apex()) {}

  void run() {
    ProgressCount progress(Progress::Phase::kChecking, zone_.name_count());
    auto cursor = zone_.begin();
    while (const RecordView record = cursor.next()) {
      progress.add();
      if (progress.is_given_up()) return static_cast<void>(given_up_ = true);
      take(record);
    }
    flush();
    if (denial_ == Denial::kNsec) nsec_.finish();
    if (denial_ == Denial::kNsec3) nsec3_.finish();
  }
  [[nodiscard]] bool given_up() const noexcept { return given_up_; }
  [[nodiscard]] std::uint64_t nsec3_count() const noexcept { return nsec3_.count(); }

 private:
  void take(const RecordView& record) {
    PlacedName name{zone_.owner_of(record), record};
    if (record.find(RRType::kNSEC3).count() != 0) {
      name.place = Place::kAuthoritative;  // hashed owners lie in a space of their own
      if (denial_ == Denial::kNsec3) nsec3_.take(name.owner, record, place_);
      return push(std::move(name));
    }
    name.place = place_of(name.owner, record);
    if (denial_ == Denial::kNsec3 && exists(name)) push_empty_above(name);
    if (denial_ == Denial::kNsec) nsec_.take(name, place_);
    push(std::move(name));
  }

  /// Names below a cut or DNAME follow it directly in canonical order.
  Place place_of(const dns::Name& owner, const RecordView& record) {
    if (barrier_ && owner.view().is_at_or_below(*barrier_)) return Place::kOccluded;
    barrier_.reset();
    const bool is_cut = record.has_ns() && !(owner == zone_.apex());
    if (is_cut || record.has_dname()) barrier_ = owner;
    return is_cut ? Place::kCut : Place::kAuthoritative;
  }

  /// All names between this one and the last name that exists are new: those above it are empty.
  void push_empty_above(const PlacedName& name) {
    const bool secure = !is_insecure_cut(name);
    dns::Name& last = secure ? last_secure_ : last_;
    const std::size_t known = std::max(common_labels(name.owner, last),
                                       zone_.apex().label_count());
    const std::size_t labels = name.owner.view().label_count();
    for (std::size_t count = known + 1; count < labels; ++count)
      push({dns::Name(name.owner.view().ancestor(labels - count)), {}, Place::kEmpty, secure});
    last_ = name.owner;
    if (secure) last_secure_ = name.owner;
  }

  void push(PlacedName&& name) {
    if (batch_.names.empty()) {
      batch_.first_place = place_;
      batch_.names.reserve(kBatchNames);
    }
    batch_.names.push_back(std::move(name));
    ++place_;
    if (batch_.names.size() == kBatchNames) flush();
  }
  void flush() {
    if (!batch_.names.empty()) crew_.give(std::exchange(batch_, {}));
  }

  ZoneView zone_;
  Crew& crew_;
  NsecChain nsec_;
  Nsec3Links nsec3_;
  Denial denial_;
  std::optional<dns::Name> barrier_;
  dns::Name last_, last_secure_;  // the last names that exist: any, and any but insecure cuts
  Batch batch_;
  std::uint64_t place_ = 0;
  bool given_up_ = false;
};

bool has_traces_of_signing(const ZoneView& zone) {
  return zone.soa().signature_count() != 0;
}

/// The verifiers' results as one.
void gather(const ZoneView& zone, Crew& crew, const Walk& walk, FaultList& faults,
            Verification& result) {
  std::vector<dns::Nsec3Hash> found;
  for (const auto& verifier : crew.verifiers()) {
    faults.add_all(std::move(verifier->faults()));
    result.signatures += verifier->sets().verified();
    const auto& end = verifier->sets().first_end();
    if (end && (!result.first_end || end->at < result.first_end->at)) result.first_end = end;
    const auto& hashes = verifier->hashed().found();
    found.insert(found.end(), hashes.begin(), hashes.end());
  }
  if (zone.denial() == Denial::kNsec3)
    find_surplus_nsec3(zone, std::move(found), walk.nsec3_count(), faults);
}

/// The check of the zone's digest, beside that of its signatures if there are threads.
class DigestCheck {
 public:
  DigestCheck(const ZoneView& zone, bool beside) {
    if (!has_zonemd(zone)) return;
    if (beside && begin_thread(zone)) return;
    fault_ = check_zonemd(zone);
  }
  ~DigestCheck() { static_cast<void>(fault()); }
  DigestCheck(const DigestCheck&) = delete;
  DigestCheck& operator=(const DigestCheck&) = delete;
  [[nodiscard]] const std::string& fault() {
    if (thread_.joinable()) thread_.join();
    return fault_;
  }

 private:
  bool begin_thread(const ZoneView& zone) {
    try {
      thread_ = std::thread([this, zone, progress = Progress::here()] {
        const Progress::Scope scope(progress);  // to be given up with the caller's work
        fault_ = check_zonemd(zone);
      });
      return true;
    } catch (const std::system_error&) {
      return false;  // no more threads for this process
    }
  }

  std::string fault_;
  std::thread thread_;
};

}  // namespace

Verification verify_zone(const ZoneView& zone, const VerifyOptions& options) {
  Verification result;
  FaultList faults;
  DigestCheck digest(zone, options.threads != 0);
  result.is_signed = zone.apex_record().find(RRType::kDNSKEY).count() != 0;
  if (!result.is_signed && has_traces_of_signing(zone))
    faults.add(0, fmt::format("{} is signed and has no DNSKEY", to_text(zone.apex())));
  if (result.is_signed) {
    std::string obstacle = SetVerifier(zone, options.now).obstacle();
    const bool verifiable = obstacle.empty();
    if (!verifiable) faults.add(0, std::move(obstacle));
    if (zone.denial() == Denial::kUnsigned)
      faults.add(0, fmt::format("{} has neither NSEC nor NSEC3PARAM", to_text(zone.apex())));
    Crew crew(zone, options, verifiable);
    Walk walk(zone, crew, faults);
    walk.run();
    crew.finish();
    if (!walk.given_up()) gather(zone, crew, walk, faults, result);
  }
  if (!digest.fault().empty()) faults.add(0, digest.fault());
  const Progress* progress = Progress::here();
  result.given_up = progress != nullptr && progress->is_given_up();
  result.fault_count = faults.count();
  result.faults = faults.take_lines();
  return result;
}

std::string delegation_problem(const ZoneView& parent, const ZoneView& child) {
  using dns::RRType;
  if (!parent.loaded() || !child.loaded()) return {};
  const RRsetView set = parent.record_at(child.apex()).find(RRType::kDS);
  if (set.count() == 0 || parent.apex_record().find(RRType::kDNSKEY).count() == 0) return {};
  const RRsetView keys = child.apex_record().find(RRType::kDNSKEY);
  bool usable = false;
  bool matched = false;
  set.for_each_rdata([&](ByteView rdata) {
    const auto ds = dns::parse_ds(rdata);
    if (!ds || !dns::is_supported_digest(ds->digest_type) ||
        !dns::is_supported_algorithm(ds->algorithm))
      return;
    usable = true;
    keys.for_each_rdata([&](ByteView key) { matched |= dns::matches(*ds, child.apex(), key); });
  });
  // RFC 4035 §5.2: with no DS that it knows, a validator takes the zone for unsigned.
  if (!usable || matched) return {};
  return fmt::format(
      "validators refuse it: {}, which is served here, too, has DS records for it, "
      "and {}",
      to_text(parent.apex()),
      keys.count() == 0 ? "it has no DNSKEY" : "none is of its DNSKEY records");
}

}  // namespace pando::zone
