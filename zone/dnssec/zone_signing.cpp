#include "zone/dnssec/zone_signing.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/progress.h"
#include "zone/dnssec/name_signer.h"
#include "zone/draft/collected.h"

namespace pando::zone {

using dns::RRType;

namespace {

/// Names that a thread signs together: some hundred signatures, ten milliseconds of work.
constexpr std::size_t kNamesTogether = 128;
/// Batches of each thread between the walk and the builder: the walk would be far ahead otherwise,
/// with gigabytes of finished records behind one slow batch.
constexpr std::size_t kBatchesAhead = 4;

struct SigningBatch {
  std::vector<SourceName> names;
  // or else links of a chain that is closed, from the index `first` on
  const Nsec3Chain* chain = nullptr;
  std::size_t first = 0;
  std::size_t links = 0;
  dns::NameView apex{};

  std::vector<std::size_t> ends;  // of each name's, or link's, records in `records`
  Bytes records;                  // CollectedRecords
  bool is_done = false;
  bool has_failed = false;
};

void sign_batch(NameSigner& signer, SigningBatch& batch) {
  batch.ends.reserve(batch.names.size());
  for (const SourceName& name : batch.names) {
    batch.has_failed = batch.has_failed || !signer.sign(name, batch.records);
    batch.ends.push_back(batch.records.size());
  }
  for (std::size_t i = batch.first; i < batch.first + batch.links; ++i) {
    batch.has_failed =
        batch.has_failed || !signer.sign_link(*batch.chain, i, batch.apex, batch.records);
    batch.ends.push_back(batch.records.size());
  }
}

/// Threads that sign batches. Batches leave in the order in which they came.
class SigningCrew {
 public:
  /// At least one signer. Without threads the caller's signs.
  SigningCrew(std::vector<NameSigner> signers, unsigned threads) : signers_(std::move(signers)) {
    for (std::size_t i = 0; i < std::min<std::size_t>(threads, signers_.size()); ++i)
      if (!begin_thread(signers_[i])) return;  // those that run do the work, or the caller alone
  }
  ~SigningCrew() { finish(); }
  SigningCrew(const SigningCrew&) = delete;
  SigningCrew& operator=(const SigningCrew&) = delete;

  void give(SigningBatch&& batch) {
    auto owned = std::make_unique<SigningBatch>(std::move(batch));
    SigningBatch& given = *owned;
    batches_.push_back(std::move(owned));
    if (threads_.empty()) {
      sign_batch(signers_.front(), given);
      given.is_done = true;
      return;
    }
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(&given);
    has_work_.notify_one();
  }
  /// The first batch, signed; null when there is none. `all`: also while there is room for more
  /// batches before it must be taken.
  std::unique_ptr<SigningBatch> take(bool all) {
    if (batches_.empty() || (!all && batches_.size() < kBatchesAhead * threads_.size()))
      return nullptr;
    if (!threads_.empty()) {
      std::unique_lock lock(mutex_);
      is_signed_.wait(lock, [this] { return batches_.front()->is_done; });
    }
    auto first = std::move(batches_.front());
    batches_.pop_front();
    return first;
  }
  /// The links of all names, as a closed chain, when all batches of names were taken. kInvalid:
  /// see Nsec3Chain::close().
  Result<const Nsec3Chain*> close_chain() {
    for (NameSigner& signer : signers_) chain_.add_all(std::move(signer.links()));
    if (auto closed = chain_.close(); !closed) return pass(closed);
    return &chain_;
  }
  void finish() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
      waiting_.clear();
    }
    has_work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  /// Number of signatures made, after finish().
  [[nodiscard]] std::uint64_t made() const noexcept {
    std::uint64_t made = 0;
    for (const NameSigner& signer : signers_) made += signer.made();
    return made;
  }

 private:
  /// False: the system has no more threads for this process.
  bool begin_thread(NameSigner& signer) {
    try {
      threads_.emplace_back([this, one = &signer] { work(*one); });
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }
  void work(NameSigner& signer) {
    std::unique_lock lock(mutex_);
    for (;;) {
      has_work_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      SigningBatch& batch = *waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      sign_batch(signer, batch);
      lock.lock();
      batch.is_done = true;
      is_signed_.notify_one();
    }
  }

  std::vector<NameSigner> signers_;
  Nsec3Chain chain_;  // batches refer to it
  std::vector<std::thread> threads_;
  std::deque<std::unique_ptr<SigningBatch>> batches_;  // of the caller's thread, oldest first
  std::mutex mutex_;
  std::condition_variable has_work_, is_signed_;
  std::deque<SigningBatch*> waiting_;
  bool ended_ = false;
};

/// The walk over the source: finds each name's place and the next name, and puts signed names into
/// the builder.
class SigningWalk {
 public:
  SigningWalk(const ZoneView& source, const SigningDenial& denial, SigningCrew& crew,
              ZoneBuilder& into)
      : source_(source), denial_(denial), crew_(crew), into_(into), last_linked_(source.apex()) {}

  Status run() {
    ProgressCount progress(Progress::Phase::kBuilding, source_.record_count(),
                           source_.name_count());
    auto cursor = source_.begin();
    while (const RecordView record = cursor.next()) {
      progress.add();
      if (progress.is_given_up()) return fail(Errc::kExists, "{}", kGivenUp);
      take(record);
      if (auto put = put_signed(false); !put) return put;
    }
    if (!denial_.is_nsec3) close_link(dns::Name(source_.apex()));
    give();
    auto put = put_signed(true);
    return put && denial_.is_nsec3 ? sign_links() : put;
  }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  void take(const RecordView& record) {
    SourceName name{source_.owner_of(record), record, Place::kOccluded, false, {}};
    name.is_apex = name.owner == source_.apex();
    bool is_source = name.is_apex;
    for_each_source_set(record, name.is_apex, [&](const RRsetView&) { is_source = true; });
    count_dropped(record, name.is_apex);
    if (!is_source) return;  // a name of derived records alone, an NSEC3 owner for instance
    name.place = place_of(name);
    if (name.place != Place::kOccluded) {
      if (!denial_.is_nsec3) close_link(name.owner);
      if (batch_.names.size() >= kNamesTogether) give();
      open_link_ = batch_.names.size();
      if (denial_.is_nsec3) add_empty_above(name);
    }
    batch_.names.push_back(std::move(name));
  }

  /// RFC 5155 §7.1: names between this one and the last one with a record of the chain are empty,
  /// unless they are above that, too. With opt-out those above insecure delegations alone have
  /// none.
  void add_empty_above(const SourceName& name) {
    const bool has_ds = name.record.find(RRType::kDS).count() != 0;
    if (denial_.is_opt_out && name.place == Place::kCut && !has_ds) return;
    if (!name.is_apex)
      for (dns::NameView above = name.owner.view().parent();
           !last_linked_.view().is_at_or_below(above); above = above.parent())
        batch_.names.push_back({dns::Name(above), {}, Place::kEmpty, false, {}});
    last_linked_ = name.owner;
  }

  /// The records of the chain, in the order of their hashes.
  Status sign_links() {
    const auto closed = crew_.close_chain();
    if (!closed) return pass(closed);
    const Nsec3Chain& chain = **closed;
    ProgressCount progress(Progress::Phase::kBuilding, chain.size());
    const dns::NameView apex = source_.apex();
    for (std::size_t i = 0; i < chain.size(); i += kNamesTogether) {
      const std::size_t count = std::min(kNamesTogether, chain.size() - i);
      progress.add(count);
      if (progress.is_given_up()) return fail(Errc::kExists, "{}", kGivenUp);
      SigningBatch batch;
      batch.chain = &chain;
      batch.first = i;
      batch.links = count;
      batch.apex = apex;
      crew_.give(std::move(batch));
      if (auto put = put_signed(false); !put) return put;
    }
    return put_signed(true);
  }

  /// The name before points to this one.
  void close_link(const dns::Name& next) {
    if (open_link_ < batch_.names.size()) batch_.names[open_link_].next = next.folded();
  }

  /// Names below a cut or DNAME follow it directly in canonical order.
  Place place_of(const SourceName& name) {
    if (barrier_ && name.owner.view().is_at_or_below(*barrier_)) return Place::kOccluded;
    barrier_.reset();
    const bool is_cut = name.record.has_ns() && !name.is_apex;
    if (is_cut || name.record.has_dname()) barrier_ = name.owner;
    return is_cut ? Place::kCut : Place::kAuthoritative;
  }

  void count_dropped(const RecordView& record, bool is_apex) {
    record.for_each_rrset([&](const RRsetView& set) {
      dropped_ += set.signature_count();
      if (dns::is_dropped_by_signing(set.type(), is_apex)) dropped_ += set.count();
    });
  }

  void give() {
    if (!batch_.names.empty()) crew_.give(std::exchange(batch_, {}));
  }

  Status put_signed(bool all) {
    while (const auto batch = crew_.take(all)) {
      if (batch->has_failed) return fail(Errc::kUnsupported, "OpenSSL makes no signature");
      std::size_t begin = 0;
      for (std::size_t i = 0; i < batch->ends.size(); ++i) {
        const ByteView derived = ByteView(batch->records).subspan(begin, batch->ends[i] - begin);
        const auto put = batch->chain == nullptr ? put_name(batch->names[i], derived)
                                                 : put_link(*batch, i, derived);
        if (!put) return put;
        begin = batch->ends[i];
      }
    }
    return {};
  }

  Status put_link(const SigningBatch& batch, std::size_t index, ByteView derived) {
    return put_derived(nsec3_owner(batch.chain->hash(batch.first + index), batch.apex), derived);
  }

  Status put_name(const SourceName& name, ByteView derived) {
    Status put;
    for_each_source_set(name.record, name.is_apex, [&](const RRsetView& set) {
      set.for_each_rdata([&](ByteView rdata) {
        if (put) put = into_.add(name.owner, set.type(), set.ttl(), rdata);
      });
    });
    return put ? put_derived(name.owner, derived) : put;
  }

  Status put_derived(const dns::Name& owner, ByteView derived) {
    Status put;
    while (put && !derived.empty()) {
      const CollectedRecord record(derived.data());
      put = into_.add(owner, record.type(), record.ttl(), record.rdata());
      derived = derived.subspan(record.octets().size());
    }
    return put;
  }

  ZoneView source_;
  const SigningDenial& denial_;
  SigningCrew& crew_;
  ZoneBuilder& into_;
  std::optional<dns::Name> barrier_;
  SigningBatch batch_;
  std::size_t open_link_ = 0;  // index in the batch of the last name that exists
  dns::Name last_linked_;      // the last name that has an NSEC3 record
  std::uint64_t dropped_ = 0;
};

/// RDATA of the source's SOA, with another serial.
Bytes soa_with(const ZoneView& source, std::optional<dns::Serial> serial) {
  constexpr std::size_t kNumbersOctets = 20;  // RFC 1035 §3.3.13
  const ByteView stored = source.soa().first_rdata();
  Bytes rdata(stored.begin(), stored.end());
  if (serial) store_be32(rdata.data() + rdata.size() - kNumbersOctets, serial->value);
  return rdata;
}

Status check_soa(const ZoneView& source) {
  constexpr std::size_t kMinSoaOctets = 22;
  if (!source || !source.loaded() || source.soa().first_rdata().size() < kMinSoaOctets)
    return fail(Errc::kInvalid, "no zone with a SOA record");
  return {};
}

struct SoaTimes {
  dns::Ttl ttl;
  dns::Ttl denial;
};

/// The apex's sets that signing makes or changes.
std::vector<MadeSet> make_apex_sets(const ZoneView& source, const SigningKeys& keys,
                                    const ZoneSigningOptions& options, SoaTimes& times) {
  constexpr std::size_t kNumberOctets = 4;
  const RRsetView soa = source.soa();
  Bytes rdata = soa_with(source, options.serial);
  const dns::Ttl minimum{load_be32(rdata.data() + rdata.size() - kNumberOctets)};
  times = {soa.ttl(), std::min(soa.ttl(), minimum)};
  std::vector<MadeSet> sets{{RRType::kSOA, times.ttl, {std::move(rdata)}}};
  for (MadeSet& set : apex_key_sets(source.apex(), keys, times.ttl, options.parent_request))
    sets.push_back(std::move(set));
  if (options.denial.is_nsec3)
    sets.push_back({RRType::kNSEC3PARAM, kNsec3ParamTtl, {nsec3param_rdata(options.denial)}});
  return sets;
}

}  // namespace

Result<ZoneSigningReport> sign_zone(const ZoneView& source, const SigningKeys& keys,
                                    const ZoneSigningOptions& options, ZoneBuilder& into) {
  if (auto found = check_soa(source); !found) return pass(found);
  if (options.denial.is_nsec3 && !can_have_nsec3(source.apex()))
    return fail(Errc::kInvalid, "the zone's name is too long for NSEC3 records");
  SoaTimes times;
  const std::vector<MadeSet> apex_sets = make_apex_sets(source, keys, options, times);
  std::vector<NameSigner> signers;
  for (unsigned i = 0; i < std::max(options.threads, 1U); ++i) {
    auto signer = SetSigner::make(source.apex(), keys, options.times);
    if (!signer) return pass(signer);
    signers.emplace_back(std::move(*signer), apex_sets, options.denial, times.denial);
  }
  SigningCrew crew(std::move(signers), options.threads);
  SigningWalk walk(source, options.denial, crew, into);
  if (auto done = walk.run(); !done) return pass(done);
  crew.finish();
  return ZoneSigningReport{crew.made(), walk.dropped()};
}

Status copy_source(const ZoneView& signed_zone, dns::Serial serial, ZoneBuilder& into) {
  if (auto found = check_soa(signed_zone); !found) return found;
  const dns::Name apex(signed_zone.apex());
  Status done = into.add(apex, RRType::kSOA, signed_zone.soa().ttl(), soa_with(signed_zone, serial));
  ProgressCount progress(Progress::Phase::kBuilding, signed_zone.record_count(),
                         signed_zone.name_count());
  auto cursor = signed_zone.begin();
  while (const RecordView record = cursor.next()) {
    progress.add();
    if (progress.is_given_up()) return fail(Errc::kExists, "{}", kGivenUp);
    const dns::Name owner = signed_zone.owner_of(record);
    for_each_source_set(record, owner == apex, [&](const RRsetView& set) {
      set.for_each_rdata([&](ByteView rdata) {
        if (done) done = into.add(owner, set.type(), set.ttl(), rdata);
      });
    });
    if (!done) return done;
  }
  return done;
}

}  // namespace pando::zone
