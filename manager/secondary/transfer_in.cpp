#include "manager/secondary/transfer_in.h"

#include <asio/this_coro.hpp>
#include <utility>

#include "base/random.h"
#include "base/unix_time.h"
#include "dns/message/edns.h"
#include "dns/rdata/rdata.h"
#include "manager/commit/zone_diff.h"
#include "manager/net/message_stream.h"
#include "manager/support/run_in_pool.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

/// A query and the data to check its answers.
struct Query {
  Bytes message;
  std::uint16_t id;
  std::optional<dns::TsigSession> tsig;
};

/// An IXFR query carries our SOA in the authority section (RFC 1995 §3); only the serial matters
/// there.
Bytes soa_with_serial(dns::Serial serial) {
  Bytes rdata{0, 0};
  append_be32(rdata, serial.value);
  for (int i = 0; i < 4; ++i) append_be32(rdata, 0);
  return rdata;
}

/// The option's data is empty in a query (RFC 7314 §2).
bool put_expire_option(dns::MessageWriter& writer) {
  constexpr std::uint16_t kPayload = 1232;  // meaningless over TCP
  dns::OptBuilder opt(kPayload, dns::Rcode::kNoError, false);
  opt.add(dns::kOptionExpire, {});
  return writer.put_raw_additional(opt.record());
}

Result<Query> make_query(const TransferJob& job, dns::RRType type, bool edns) {
  Query query;
  query.id = random_number<std::uint16_t>();
  std::uint8_t space[1024];
  dns::MessageWriter writer(space, sizeof space);
  dns::Header header;
  header.id = query.id;
  writer.put_header(header);
  bool fits = writer.put_question(job.zone, type, dns::RRClass::kIN);
  if (type == dns::RRType::kIXFR)
    fits = fits && writer.put_record(dns::Section::kAuthority, job.zone, dns::RRType::kSOA,
                                     dns::RRClass::kIN, 0, soa_with_serial(*job.current));
  if (edns) fits = fits && put_expire_option(writer);
  if (!fits) return fail(Errc::kFull, "query does not fit");
  const ByteView message = writer.finish();
  query.message.assign(message.begin(), message.end());
  if (job.key != nullptr) {
    query.tsig = dns::TsigSession::for_request(*job.key);
    if (auto done = query.tsig->sign(query.message, unix_seconds()); !done) return pass(done);
  }
  return query;
}

Status check_signature(Query& query, ByteView message) {
  return query.tsig ? query.tsig->verify_response(message, unix_seconds()) : Status{};
}

bool answers(ByteView message, const Query& query) {
  return message.size() >= 2 && load_be16(message.data()) == query.id;
}

/// The answer to a SOA query.
struct SoaAnswer {
  dns::Serial serial;
  std::optional<std::uint32_t> expire;
};

Result<SoaAnswer> read_soa_answer(const TransferJob& job, const Query& query, ByteView message) {
  dns::MessageReader reader(message);
  auto header = reader.header();
  if (!header) return pass(header);
  if (!header->qr || header->id != query.id) return fail(Errc::kInvalid, "no answer to our query");
  if (header->rcode != 0)
    return fail(Errc::kDenied, "primary answers {}",
                dns::to_text(static_cast<dns::Rcode>(header->rcode)));
  // RFC 1035 §4.1.1: a non-authoritative server (a resolver, a server that lost the zone) cannot
  // say which serial is current.
  if (!header->aa) return fail(Errc::kInvalid, "primary is not an authority for the zone");
  for (unsigned i = 0; i < header->qdcount; ++i)
    if (auto question = reader.question(); !question) return pass(question);
  std::optional<dns::Serial> serial;
  for (unsigned i = 0; i < header->ancount; ++i) {
    auto record = reader.record();
    if (!record) return pass(record);
    if (serial || record->type != dns::RRType::kSOA || !(record->owner == job.zone)) continue;
    Bytes rdata;
    auto read = dns::decompress_rdata(record->type, message, record->rdata_offset,
                                      record->rdata_length, rdata);
    if (!read) return pass(read);
    serial = soa_serial(rdata);
  }
  if (!serial) return fail(Errc::kInvalid, "no SOA in the primary's answer");
  return SoaAnswer{*serial, read_expire(reader, unsigned{header->nscount} + header->arcount)};
}

/// Limit of records of a changeset kept in memory for a zone sent whole.
constexpr std::uint64_t kMaxReplacedRecords = 100'000;

/// The changeset from `live` to the received zone, SOA records included. Nullopt if the changeset
/// has more than half of the zone's records, or more than kMaxReplacedRecords.
Result<std::optional<zone::Changeset>> changeset_to(const zone::ZoneView& live,
                                                    zone::Comparison& fresh) {
  auto soa = fresh.finish();
  if (!soa) return pass(soa);
  const std::uint64_t most = std::min(live.record_count() / 2 + 10, kMaxReplacedRecords);
  auto changeset = fresh.changeset([most](std::uint64_t) { return most; });
  if (!changeset || !*changeset) return changeset;
  const auto before = soa_record(live);
  if (!before) return std::nullopt;
  (*changeset)->removed.push_back(*before);
  (*changeset)->added.push_back(std::move(soa->record));
  return changeset;
}

/// Completes a received zone, as a changeset or a built zone. Runs in the pool, so that the loop
/// stays free for other zones.
Status finish_zone(ReceivedZone& zone, const zone::ZoneView& live, TransferResult& result) {
  if (zone::Comparison* comparison = zone.comparison()) {
    auto changeset = changeset_to(live, *comparison);
    if (!changeset) return pass(changeset);
    if (*changeset) {
      result.changesets = {std::move(**changeset)};
      result.compared = live.serial();
      zone.drop_comparison();
      return {};
    }
    if (auto given = zone.build_instead(); !given) return given;
  }
  auto built = zone.builder().finish();
  if (!built) return pass(built);
  result.zone = *built;
  return {};
}

/// One refresh attempt at one primary, over several connections if necessary.
class PrimaryExchange {
 public:
  using Executor = asio::any_io_executor;
  using Outcome = Result<TransferResult, TransferFailure>;
  PrimaryExchange(const Executor& executor, const TransferJob& job, bool edns,
                 ConnectionPool& connections, shm::Store& store, asio::thread_pool& pool)
      : executor_(executor),
        job_(job),
        edns_(edns),
        connections_(connections),
        store_(store),
        pool_(pool),
        deadline_(Clock::now() + job.longest),
        rated_from_(Clock::now()),
        rated_octets_(octets()) {}

  asio::awaitable<Outcome> run();
  /// RFC 6891 §7: the RCODE of a server without EDNS.
  [[nodiscard]] bool format_error() const noexcept { return rcode_ == dns::Rcode::kFormErr; }

 private:
  using Clock = std::chrono::steady_clock;

  asio::awaitable<Status> open();
  asio::awaitable<Result<ByteView>> ask(Query& query);
  asio::awaitable<Result<ByteView>> exchange(const Query& query);
  asio::awaitable<Result<ByteView>> receive(Query& query);
  Result<ByteView> check(Query& query, ByteView message);
  asio::awaitable<Result<SoaAnswer>> ask_soa();
  asio::awaitable<Status> run_transfer(Query& query, TransferParser& parser);
  asio::awaitable<Status> resume(ReceivedZone& zone, bool is_last);
  asio::awaitable<Result<TransferResult>> fetch(dns::RRType type);
  asio::awaitable<Status> fetch_into(TransferResult& result, dns::RRType type);
  asio::awaitable<std::optional<Outcome>> request_ixfr_directly();
  asio::awaitable<Outcome> query_soa_first();
  template <class Value>
  asio::awaitable<Value> wait_for_primary(asio::awaitable<Value> step);
  /// Received so far, over all connections.
  [[nodiscard]] std::uint64_t octets() const noexcept {
    return job_.progress->octets.load(std::memory_order_relaxed);
  }
  Status check_time();
  Status check_rate();

  Executor executor_;
  const TransferJob& job_;
  bool edns_;
  ConnectionPool& connections_;
  shm::Store& store_;
  asio::thread_pool& pool_;
  std::unique_ptr<MessageStream> connection_;
  bool was_pooled_ = false;  // the connection came from the pool
  bool unreachable_ = false;
  bool heard_ = false;  // part of an answer has arrived
  Clock::time_point deadline_;
  // Beginning of the present span of TransferJob::least_octets_in, and octets() at that time.
  Clock::time_point rated_from_;
  std::uint64_t rated_octets_;
  std::optional<ServedZone> served_;  // for the comparison with a whole zone
  Clock::time_point pinned_until_;
  // Header fields of the last message.
  dns::Rcode rcode_ = dns::Rcode::kNoError;
  bool authoritative_ = false;
};

PrimaryExchange::Outcome failure(const Error& error, bool ixfr_asked = false) {
  return tl::unexpected<TransferFailure>({error, ixfr_asked});
}

/// Fails after the deadline of the attempt, and limits the next step's timeout to the remaining
/// time.
Status PrimaryExchange::check_time() {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
  if (left.count() <= 0)
    return fail(Errc::kFull, "transfer takes more than {} s (limits.transfer-time)",
                std::chrono::duration<double>(job_.longest).count());
  if (connection_) connection_->set_timeout(std::min(job_.timeout, left));
  return check_rate();
}

/// A primary that trickles would hold its share until the deadline, hours later.
Status PrimaryExchange::check_rate() {
  const Clock::time_point now = Clock::now();
  if (now < rated_from_ + job_.least_octets_in) return {};
  const std::uint64_t received = octets() - rated_octets_;
  rated_from_ = now;
  rated_octets_ += received;
  if (received >= job_.least_octets) return {};
  return fail(Errc::kFull, "transfer brings {} octets in {} s, less than {}", received,
              std::chrono::duration<double>(job_.least_octets_in).count(), job_.least_octets);
}

/// Runs a step of the connection, during which the attempt waits for its primary.
template <class Value>
asio::awaitable<Value> PrimaryExchange::wait_for_primary(asio::awaitable<Value> step) {
  job_.progress->waits.store(true, std::memory_order_relaxed);
  connection_->set_meter(&job_.progress->octets);
  Value value = co_await std::move(step);
  connection_->set_meter(nullptr);
  job_.progress->waits.store(false, std::memory_order_relaxed);
  co_return value;
}

/// Provides an idle connection: the present one, a pooled one, or a new one.
asio::awaitable<Status> PrimaryExchange::open() {
  if (connection_) co_return check_time();
  if (!was_pooled_) connection_ = connections_.take(job_.primary, job_.source);
  was_pooled_ = connection_ != nullptr;
  if (was_pooled_) co_return check_time();
  connection_ = std::make_unique<MessageStream>(executor_, job_.primary, job_.source, job_.timeout);
  if (auto in_time = check_time(); !in_time) co_return in_time;
  Status connected = co_await wait_for_primary(connection_->connect());
  unreachable_ = !connected;
  co_return connected;
}

/// Sends `query` and returns the first message of the answer, its signature checked.
asio::awaitable<Result<ByteView>> PrimaryExchange::ask(Query& query) {
  for (;;) {
    if (auto opened = co_await open(); !opened) co_return pass(opened);
    const std::uint64_t before = connection_->received();
    auto answer = co_await exchange(query);
    const bool silent = connection_->received() == before;
    // A pooled connection may still deliver the rest of an earlier answer first.
    const bool foreign = answer && !answers(*answer, query);
    if (!was_pooled_ || !(silent || foreign)) {
      heard_ = heard_ || !silent;
      if (auto in_time = check_time(); !in_time) co_return pass(in_time);
      if (!answer) co_return answer;
      co_return check(query, *answer);
    }
    connection_.reset();  // was_pooled_ makes open() create a new connection
  }
}

asio::awaitable<Result<ByteView>> PrimaryExchange::exchange(const Query& query) {
  if (auto sent = co_await wait_for_primary(connection_->send(query.message)); !sent)
    co_return pass(sent);
  co_return co_await wait_for_primary(connection_->receive());
}

/// Receives the next message of the answer to `query`, its signature checked.
asio::awaitable<Result<ByteView>> PrimaryExchange::receive(Query& query) {
  if (auto in_time = check_time(); !in_time) co_return pass(in_time);
  auto message = co_await wait_for_primary(connection_->receive());
  if (auto in_time = check_time(); !in_time) co_return pass(in_time);
  if (!message) co_return message;
  co_return check(query, *message);
}

Result<ByteView> PrimaryExchange::check(Query& query, ByteView message) {
  const auto header = dns::read_header(message);
  rcode_ = header ? static_cast<dns::Rcode>(header->rcode) : dns::Rcode::kNoError;
  authoritative_ = header && header->aa;
  if (auto ok = check_signature(query, message); !ok) return pass(ok);
  return message;
}

asio::awaitable<Result<SoaAnswer>> PrimaryExchange::ask_soa() {
  auto query = make_query(job_, dns::RRType::kSOA, edns_);
  if (!query) co_return pass(query);
  auto answer = co_await ask(*query);
  if (!answer) co_return pass(answer);
  co_return read_soa_answer(job_, *query, *answer);
}

/// Feeds the response messages of one AXFR or IXFR into the parser.
asio::awaitable<Status> PrimaryExchange::run_transfer(Query& query, TransferParser& parser) {
  auto message = co_await ask(query);
  for (;;) {
    if (!message) co_return pass(message);
    auto done = parser.feed(*message);
    if (!done) co_return pass(done);
    if (auto resumed = co_await resume(parser.received_zone(), *done); !resumed) co_return resumed;
    if (*done) co_return query.tsig ? query.tsig->finish() : Status{};
    message = co_await receive(query);
  }
}

/// Continues a whole zone: by comparison with the served zone while cheap, else by building.
asio::awaitable<Status> PrimaryExchange::resume(ReceivedZone& zone, bool is_last) {
  if (zone.waits()) {
    if (job_.served) served_ = co_await job_.served();
    pinned_until_ = Clock::now() + job_.longest_pin;
    co_return zone.resume(served_ ? &served_->zone : nullptr);
  }
  const bool builds = zone.comparison() == nullptr;
  const bool goes_on = !builds && !zone.comparison()->is_too_much() &&
                       zone.comparison()->kept_count() <= kMaxReplacedRecords &&
                       Clock::now() < pinned_until_;
  if (is_last || builds || goes_on) co_return Status{};
  const Status built =
      co_await run_in_pool(pool_, [&]() -> Status { return zone.build_instead(); });
  served_.reset();
  co_return built;
}

/// Fills `result`; its transaction holds a whole zone that was built.
asio::awaitable<Status> PrimaryExchange::fetch_into(TransferResult& result, dns::RRType type) {
  auto query = make_query(job_, type, edns_);
  if (!query) co_return pass(query);
  TransferParser parser(job_.zone, type, job_.current, query->id, job_.limits, *result.transaction);
  if (job_.current) parser.received_zone().wait();
  if (auto done = co_await run_transfer(*query, parser); !done) co_return done;
  result.content = parser.content();
  result.serial = parser.serial();
  result.expire = parser.expire();
  result.changesets = std::move(parser.changesets());
  result.records = parser.records();
  result.octets = parser.octets();
  result.foreign_records = parser.received_zone().foreign_records();
  Status finished;
  if (result.content == TransferParser::Content::kZone)
    finished = co_await run_in_pool(pool_, [&]() -> Status {
      return finish_zone(parser.received_zone(), served_ ? served_->zone : zone::ZoneView(),
                         result);
    });
  if (finished && !result.zone) result.transaction.reset();
  co_return finished;
}

/// The transfer itself; the connection may have been used for the SOA query before.
asio::awaitable<Result<TransferResult>> PrimaryExchange::fetch(dns::RRType type) {
  TransferResult result;
  result.transaction.emplace(store_.begin_private());
  auto done = co_await fetch_into(result, type);
  served_.reset();
  if (done) co_return std::move(result);
  // Dropped in the pool, since freeing most of a zone takes time, too.
  [[maybe_unused]] const Status dropped = co_await run_in_pool(pool_, [&]() -> Status {
    result.transaction.reset();
    return {};
  });
  co_return pass(done);
}

/// RFC 1995 §2: the answer to an IXFR begins with the primary's SOA, so no SOA query is needed.
/// Nullopt: the answer does not show the primary's state, or whether an AXFR would succeed.
asio::awaitable<std::optional<PrimaryExchange::Outcome>> PrimaryExchange::request_ixfr_directly() {
  auto result = co_await fetch(dns::RRType::kIXFR);
  if (result) {
    // As in read_soa_answer(): a non-authoritative server cannot say which serial is current.
    if (result->content == TransferParser::Content::kUpToDate && !authoritative_)
      co_return std::nullopt;
    co_return std::move(*result);
  }
  if (unreachable_) co_return failure(result.error());
  if (heard_ && rcode_ == dns::Rcode::kNoError) co_return failure(result.error(), true);
  // transfer_in() retries without EDNS
  if (edns_ && format_error()) co_return failure(result.error(), true);
  co_return std::nullopt;
}

asio::awaitable<PrimaryExchange::Outcome> PrimaryExchange::query_soa_first() {
  std::optional<std::uint32_t> expire;
  if (job_.current) {
    auto soa = co_await ask_soa();
    if (!soa) co_return failure(soa.error());
    expire = soa->expire;
    if (!soa->serial.ahead_of(*job_.current)) {
      TransferResult nothing_new;
      nothing_new.serial = soa->serial;
      nothing_new.expire = expire;
      co_return std::move(nothing_new);
    }
  }
  const auto type = !job_.current || job_.whole_zone ? dns::RRType::kAXFR : dns::RRType::kIXFR;
  auto result = co_await fetch(type);
  // Without a connection no IXFR was sent, so an AXFR would fail as well.
  if (!result) co_return failure(result.error(), type == dns::RRType::kIXFR && !unreachable_);
  if (!result->expire) result->expire = expire;
  co_return std::move(*result);
}

asio::awaitable<PrimaryExchange::Outcome> PrimaryExchange::run() {
  std::optional<Outcome> outcome;
  if (job_.notified && job_.current && !job_.whole_zone) {
    outcome = co_await request_ixfr_directly();
    if (!outcome && connection_ && !connection_->at_rest()) connection_.reset();
  }
  if (!outcome) outcome = co_await query_soa_first();
  if (*outcome) connections_.put(std::move(connection_));
  co_return std::move(*outcome);
}

}  // namespace

asio::awaitable<Result<TransferResult, TransferFailure>> transfer_in(TransferJob job,
                                                                     ConnectionPool& connections,
                                                                     shm::Store& store,
                                                                     asio::thread_pool& pool) {
  const auto executor = co_await asio::this_coro::executor;
  if (!job.progress) job.progress = std::make_shared<TransferProgress>();
  bool edns = true;
  for (;;) {
    PrimaryExchange attempt(executor, job, edns, connections, store, pool);
    auto result = co_await attempt.run();
    if (!result) result.error().silent = job.progress->octets == 0;
    if (result || !attempt.format_error() || !std::exchange(edns, false)) co_return result;
  }
}

}  // namespace pando::manager
