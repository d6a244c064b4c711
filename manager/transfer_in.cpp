#include "manager/transfer_in.h"

#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <ctime>
#include <random>

#include "dns/rdata.h"
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

Result<Query> make_query(const TransferJob& job, dns::RRType type) {
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

/// Serial in the answer to a SOA query.
Result<dns::Serial> read_soa_answer(const TransferJob& job, const Query& query, ByteView message) {
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
  for (unsigned i = 0; i < header->ancount; ++i) {
    auto record = reader.record();
    if (!record) return pass(record);
    if (record->type != dns::RRType::kSOA || !(record->owner == job.zone)) continue;
    Bytes rdata;
    auto read = dns::decompress_rdata(record->type, message, record->rdata_offset,
                                      record->rdata_length, rdata);
    if (!read) return pass(read);
    return soa_serial(rdata);
  }
  return fail(Errc::kInvalid, "no SOA in the primary's answer");
}

asio::awaitable<Result<dns::Serial>> ask_serial(MessageStream& connection, const TransferJob& job) {
  auto query = make_query(job, dns::RRType::kSOA);
  if (!query) co_return pass(query);
  if (auto sent = co_await connection.send(query->message); !sent) co_return pass(sent);
  auto answer = co_await connection.receive();
  if (!answer) co_return pass(answer);
  if (auto ok = check_signature(*query, *answer); !ok) co_return pass(ok);
  co_return read_soa_answer(job, *query, *answer);
}

/// The response messages of one AXFR or IXFR, into the parser.
asio::awaitable<Status> run_transfer(MessageStream& connection, Query& query,
                                     TransferParser& parser) {
  if (auto sent = co_await connection.send(query.message); !sent) co_return sent;
  for (;;) {
    auto message = co_await connection.receive();
    if (!message) co_return pass(message);
    if (auto ok = check_signature(query, *message); !ok) co_return ok;
    auto done = parser.feed(*message);
    if (!done) co_return pass(done);
    if (*done) co_return query.tsig ? query.tsig->finish() : Status{};
  }
}

/// Builds a received zone in the pool, so that the loop keeps time for other zones.
asio::awaitable<Status> build(TransferParser& parser, TransferResult& result,
                              const zone::DataLimits& limits, shm::Store& store,
                              asio::thread_pool& pool) {
  co_return co_await run_in(pool, [&]() -> Status {
    result.transaction.emplace(store.begin_private());
    auto built = parser.builder().finish(*result.transaction, limits);
    if (!built) return pass(built);
    result.zone = *built;
    return {};
  });
}

/// The transfer itself, over a connection on which the primary's SOA may have been asked before.
asio::awaitable<Result<TransferResult>> fetch(MessageStream& connection, const TransferJob& job,
                                              dns::RRType type, shm::Store& store,
                                              asio::thread_pool& pool) {
  auto query = make_query(job, type);
  if (!query) co_return pass(query);
  TransferParser parser(job.zone, type, job.current, query->id, job.limits);
  if (auto done = co_await run_transfer(connection, *query, parser); !done) co_return pass(done);
  TransferResult result;
  result.content = parser.content();
  result.serial = parser.serial();
  // Downstream would never follow a zone that goes back.
  if (result.content == TransferParser::Content::kZone && job.current &&
      !result.serial.ahead_of(*job.current))
    co_return fail(Errc::kInvalid, "transfer brings serial {}, which is not ahead of ours, {}",
                   result.serial.value, job.current->value);
  result.differences = std::move(parser.differences());
  result.records = parser.records();
  result.octets = parser.octets();
  result.foreign_records = parser.foreign_records();
  if (result.content == TransferParser::Content::kZone) {
    auto built = co_await build(parser, result, job.limits.data, store, pool);
    if (!built) co_return pass(built);
  }
  co_return std::move(result);
}

}  // namespace

asio::awaitable<Result<TransferResult, TransferFailure>> transfer_in(TransferJob job,
                                                                     shm::Store& store,
                                                                     asio::thread_pool& pool) {
  const auto failure = [](Error error, bool ixfr_asked = false) {
    return tl::unexpected<TransferFailure>({std::move(error), ixfr_asked});
  };
  MessageStream connection(co_await asio::this_coro::executor, job.primary, job.source,
                           job.patience);
  if (auto connected = co_await connection.connect(); !connected)
    co_return failure(connected.error());
  if (job.current) {
    auto serial = co_await ask_serial(connection, job);
    if (!serial) co_return failure(serial.error());
    if (!serial->ahead_of(*job.current)) {
      TransferResult nothing_new;
      nothing_new.serial = *serial;
      co_return std::move(nothing_new);
    }
  }
  const auto type = !job.current || job.whole_zone ? dns::RRType::kAXFR : dns::RRType::kIXFR;
  auto result = co_await fetch(connection, job, type, store, pool);
  if (!result) co_return failure(result.error(), type == dns::RRType::kIXFR);
  co_return std::move(*result);
}

}  // namespace pando::manager
