#include "manager/transfer_in.h"

#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <ctime>
#include <random>
#include <utility>

#include "dns/edns.h"
#include "dns/rdata.h"
#include "manager/expire_option.h"
#include "manager/message_stream.h"
#include "manager/run_in.h"
#include "manager/soa.h"

namespace pando::manager {

namespace {

std::uint64_t now_seconds() { return static_cast<std::uint64_t>(std::time(nullptr)); }

std::uint16_t random_id() {
  static thread_local std::random_device device;
  return static_cast<std::uint16_t>(device());
}

/// A query of ours and what is needed to check its answers.
struct Query {
  Bytes message;
  std::uint16_t id;
  std::optional<dns::TsigSession> tsig;
};

/// IXFR carries our SOA in the authority section (RFC 1995 §3): only its serial counts.
Bytes soa_with_serial(dns::Serial serial) {
  Bytes rdata{0, 0};
  append_be32(rdata, serial.value);
  for (int i = 0; i < 4; ++i) append_be32(rdata, 0);
  return rdata;
}

/// The option's data is empty in a query (RFC 7314 §2).
bool put_expire_option(dns::MessageWriter& writer) {
  constexpr std::uint16_t kPayload = 1232;  // of no meaning over TCP
  dns::OptBuilder opt(kPayload, dns::Rcode::kNoError, false);
  opt.add(dns::kOptionExpire, {});
  return writer.put_raw_additional(opt.record());
}

Result<Query> make_query(const TransferJob& job, dns::RRType type, bool edns) {
  Query query;
  query.id = random_id();
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
    if (auto done = query.tsig->sign(query.message, now_seconds()); !done) return pass(done);
  }
  return query;
}

Status check_signature(Query& query, ByteView message) {
  return query.tsig ? query.tsig->verify_response(message, now_seconds()) : Status{};
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
  // RFC 1035 §4.1.1: who is not an authority (a resolver, a server that lost the zone) cannot say
  // what is current.
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

/// Ends a received zone in the pool, so that the loop keeps time for other zones: what came out of
/// order is sorted there.
asio::awaitable<Status> finish_zone(TransferParser& parser, TransferResult& result,
                                    asio::thread_pool& pool) {
  co_return co_await run_in(pool, [&]() -> Status {
    auto built = parser.builder().finish();
    if (!built) return pass(built);
    result.zone = *built;
    return {};
  });
}

/// One connection to one primary.
class Visit {
 public:
  using Executor = asio::any_io_executor;
  Visit(const Executor& executor, const TransferJob& job, bool edns, shm::Store& store,
        asio::thread_pool& pool)
      : job_(job),
        edns_(edns),
        store_(store),
        pool_(pool),
        connection_(executor, job.primary, job.source, job.patience),
        deadline_(Clock::now() + job.longest) {}

  asio::awaitable<Result<TransferResult, TransferFailure>> run();
  /// RFC 6891 §7: what a server says that does not know EDNS.
  [[nodiscard]] bool format_error() const noexcept { return format_error_; }

 private:
  using Clock = std::chrono::steady_clock;

  asio::awaitable<Result<SoaAnswer>> ask_soa();
  asio::awaitable<Status> run_transfer(Query& query, TransferParser& parser);
  asio::awaitable<Result<TransferResult>> fetch(dns::RRType type);
  asio::awaitable<Status> fetch_into(TransferResult& result, dns::RRType type);
  asio::awaitable<Result<ByteView>> receive(Query& query);
  [[nodiscard]] Status check_time();

  const TransferJob& job_;
  bool edns_;
  shm::Store& store_;
  asio::thread_pool& pool_;
  MessageStream connection_;
  Clock::time_point deadline_;
  bool format_error_ = false;
};

/// Steps must not take longer than what is left of the whole.
Status Visit::check_time() {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
  if (left.count() <= 0)
    return fail(Errc::kFull, "transfer takes more than {} s (limits.transfer-time)",
                std::chrono::duration<double>(job_.longest).count());
  connection_.set_patience(std::min(job_.patience, left));
  return {};
}

/// The next message of the answer to `query`, its signature checked.
asio::awaitable<Result<ByteView>> Visit::receive(Query& query) {
  if (auto in_time = check_time(); !in_time) co_return pass(in_time);
  auto message = co_await connection_.receive();
  if (auto in_time = check_time(); !in_time) co_return pass(in_time);
  if (!message) co_return message;
  const auto header = dns::read_header(*message);
  format_error_ = header && static_cast<dns::Rcode>(header->rcode) == dns::Rcode::kFormErr;
  if (auto ok = check_signature(query, *message); !ok) co_return pass(ok);
  co_return message;
}

asio::awaitable<Result<SoaAnswer>> Visit::ask_soa() {
  auto query = make_query(job_, dns::RRType::kSOA, edns_);
  if (!query) co_return pass(query);
  if (auto sent = co_await connection_.send(query->message); !sent) co_return pass(sent);
  auto answer = co_await receive(*query);
  if (!answer) co_return pass(answer);
  co_return read_soa_answer(job_, *query, *answer);
}

/// The response messages of one AXFR or IXFR, into the parser.
asio::awaitable<Status> Visit::run_transfer(Query& query, TransferParser& parser) {
  if (auto sent = co_await connection_.send(query.message); !sent) co_return sent;
  for (;;) {
    auto message = co_await receive(query);
    if (!message) co_return pass(message);
    auto done = parser.feed(*message);
    if (!done) co_return pass(done);
    if (*done) co_return query.tsig ? query.tsig->finish() : Status{};
  }
}

/// Fills `result`; a whole zone is built in its transaction while it comes.
asio::awaitable<Status> Visit::fetch_into(TransferResult& result, dns::RRType type) {
  auto query = make_query(job_, type, edns_);
  if (!query) co_return pass(query);
  TransferParser parser(job_.zone, type, job_.current, query->id, job_.limits, *result.transaction);
  if (auto done = co_await run_transfer(*query, parser); !done) co_return done;
  result.content = parser.content();
  result.serial = parser.serial();
  result.expire = parser.expire();
  // Downstream would never follow a zone that goes back.
  if (result.content == TransferParser::Content::kZone && job_.current &&
      !result.serial.ahead_of(*job_.current))
    co_return fail(Errc::kInvalid, "transfer brings serial {}, which is not ahead of ours, {}",
                   result.serial.value, job_.current->value);
  result.differences = std::move(parser.differences());
  result.records = parser.records();
  result.octets = parser.octets();
  result.foreign_records = parser.foreign_records();
  if (result.content == TransferParser::Content::kZone)
    co_return co_await finish_zone(parser, result, pool_);
  result.transaction.reset();
  co_return Status{};
}

/// The transfer itself, over a connection on which the primary's SOA may have been asked before.
asio::awaitable<Result<TransferResult>> Visit::fetch(dns::RRType type) {
  TransferResult result;
  result.transaction.emplace(store_.begin_private());
  auto done = co_await fetch_into(result, type);
  if (done) co_return std::move(result);
  // Giving back the memory of most of a zone takes time, too.
  [[maybe_unused]] const Status dropped = co_await run_in(pool_, [&]() -> Status {
    result.transaction.reset();
    return {};
  });
  co_return pass(done);
}

asio::awaitable<Result<TransferResult, TransferFailure>> Visit::run() {
  const auto failure = [](Error error, bool ixfr_asked = false) {
    return tl::unexpected<TransferFailure>({std::move(error), ixfr_asked});
  };
  if (auto connected = co_await connection_.connect(); !connected)
    co_return failure(connected.error());
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
  if (!result) co_return failure(result.error(), type == dns::RRType::kIXFR);
  if (!result->expire) result->expire = expire;
  co_return std::move(*result);
}

}  // namespace

asio::awaitable<Result<TransferResult, TransferFailure>> transfer_in(TransferJob job,
                                                                     shm::Store& store,
                                                                     asio::thread_pool& pool) {
  const auto executor = co_await asio::this_coro::executor;
  bool edns = true;
  for (;;) {
    Visit visit(executor, job, edns, store, pool);
    auto result = co_await visit.run();
    if (result || !visit.format_error() || !std::exchange(edns, false)) co_return result;
  }
}

}  // namespace pando::manager
