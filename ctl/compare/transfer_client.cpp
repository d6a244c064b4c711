#include "ctl/compare/transfer_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "base/unix_time.h"
#include "dns/message/message_reader.h"
#include "dns/message/message_writer.h"
#include "dns/rdata/rdata.h"

namespace pando::ctl {

namespace {

/// A connection on which each step has the same limit of time.
class Stream {
 public:
  static Result<Stream> open(const Endpoint& at, std::chrono::milliseconds timeout) {
    sockaddr_storage address{};
    const socklen_t length = at.to_sockaddr(address);
    Fd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return fail_errno("socket");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timeval limit{seconds.count(), 0};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
      if (::setsockopt(fd.get(), SOL_SOCKET, option, &limit, sizeof limit) != 0)
        return fail_errno("setsockopt");
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      if (errno == EINPROGRESS) return fail(Errc::kIo, "no connection within {} s", limit.tv_sec);
      return fail_errno("connect");
    }
    return Stream(std::move(fd));
  }

  Status send(ByteView octets) {
    while (!octets.empty()) {
      const auto sent = ::send(fd_.get(), octets.data(), octets.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return fail_errno("send");
      octets = octets.subspan(static_cast<std::size_t>(sent));
    }
    return {};
  }

  /// The next message; the view is valid until the next call.
  Result<ByteView> receive() {
    constexpr std::size_t kLengthOctets = 2;  // RFC 1035 §4.2.2
    if (auto read = fill(kLengthOctets); !read) return pass(read);
    const std::size_t length = load_be16(message_.data());
    if (auto read = fill(length); !read) return pass(read);
    return ByteView(message_);
  }

 private:
  explicit Stream(Fd fd) : fd_(std::move(fd)) {}

  Status fill(std::size_t octets) {
    message_.resize(octets);
    for (std::size_t have = 0; have < octets;) {
      const auto got = ::recv(fd_.get(), message_.data() + have, octets - have, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return fail(Errc::kIo, "the server is silent");
      if (got < 0) return fail_errno("receive");
      if (got == 0) return fail(Errc::kIo, "the server closed the connection before the zone's end");
      have += static_cast<std::size_t>(got);
    }
    return {};
  }

  Fd fd_;
  Bytes message_;
};

Result<Bytes> axfr_query(const dns::Name& zone, std::uint16_t id) {
  std::uint8_t space[512];
  dns::MessageWriter writer(space, sizeof space);
  dns::Header header;
  header.id = id;
  writer.put_header(header);
  if (!writer.put_question(zone, dns::RRType::kAXFR, dns::RRClass::kIN))
    return fail(Errc::kFull, "query does not fit");
  const ByteView message = writer.finish();
  return Bytes(message.begin(), message.end());
}

tl::unexpected<Error> refusal_of(unsigned rcode) {
  const auto code = static_cast<dns::Rcode>(rcode);
  const bool denied = code == dns::Rcode::kRefused || code == dns::Rcode::kNotAuth;
  return fail(Errc::kDenied, "the server answers {}{}", dns::to_text(code),
              denied ? ": has it the zone, and does it allow a transfer to this host or --key?"
                     : "");
}

}  // namespace

Result<bool> TransferReader::feed(ByteView message) {
  dns::MessageReader reader(message);
  auto header = reader.header();
  if (!header) return pass(header);
  if (!header->qr || header->id != id_) return fail(Errc::kInvalid, "no answer to the query");
  if (header->rcode != 0) return refusal_of(header->rcode);
  for (unsigned i = 0; i < header->qdcount; ++i)
    if (auto question = reader.question(); !question) return pass(question);
  for (unsigned i = 0; i < header->ancount; ++i) {
    auto record = reader.record();
    if (!record) return pass(record);
    if (record->rr_class != dns::RRClass::kIN) return fail(Errc::kInvalid, "a class that is not IN");
    const bool is_soa = record->type == dns::RRType::kSOA && record->owner == records_.zone();
    if (is_soa && begun_) return true;  // RFC 5936 §2.2: the zone's SOA again
    if (!is_soa && !begun_) return fail(Errc::kInvalid, "the zone does not begin with its SOA");
    begun_ = true;
    Bytes rdata;
    auto read = dns::decompress_rdata(record->type, message, record->rdata_offset,
                                      record->rdata_length, rdata);
    if (!read)
      return fail(Errc::kInvalid, "{} {}: {}", dns::to_text(record->owner),
                  dns::to_text(record->type), read.error().text);
    records_.add(record->owner.view(), record->type, record->ttl, rdata);
  }
  return false;
}

Status transfer_zone(const TransferServer& server, RecordSet& records, std::uint64_t most_bytes) {
  const auto id = random_number<std::uint16_t>();
  auto query = axfr_query(records.zone(), id);
  if (!query) return pass(query);
  std::optional<dns::TsigSession> tsig;
  if (server.key != nullptr) {
    tsig = dns::TsigSession::for_request(*server.key);
    if (auto done = tsig->sign(*query, unix_seconds()); !done) return done;
  }
  auto stream = Stream::open(server.at, server.timeout);
  if (!stream) return pass(stream);
  Bytes framed;
  append_be16(framed, static_cast<std::uint16_t>(query->size()));
  framed.insert(framed.end(), query->begin(), query->end());
  if (auto sent = stream->send(framed); !sent) return sent;
  TransferReader reader(records, id);
  for (;;) {
    auto message = stream->receive();
    if (!message) return pass(message);
    if (tsig)
      if (auto valid = tsig->verify_response(*message, unix_seconds()); !valid) return valid;
    auto done = reader.feed(*message);
    if (!done) return pass(done);
    if (*done) break;
    if (records.bytes() > most_bytes)
      return fail(Errc::kFull, "the zone has more than {} bytes", most_bytes);
  }
  records.finish();
  return tsig ? tsig->finish() : Status();
}

}  // namespace pando::ctl
