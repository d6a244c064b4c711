#include "manager/notify/notify_out.h"

#include "base/random.h"
#include "base/unix_time.h"
#include "manager/net/udp_exchange.h"
#include "manager/notify/notify_message.h"

namespace pando::manager {

asio::awaitable<Result<dns::Rcode>> notify_out(NotifyJob job) {
  auto notify = NotifyMessage::make(job.zone, job.soa, job.ttl, random_number<std::uint16_t>(),
                                    job.key, unix_seconds());
  if (!notify) co_return pass(notify);
  std::optional<dns::Rcode> rcode;
  std::string refused;  // why the last datagram was rejected
  UdpExchange exchange;
  exchange.peer = job.remote;
  exchange.source = job.source;
  exchange.message = notify->octets();
  exchange.timeout = job.timeout;
  exchange.again = job.again;
  exchange.accept = [&](ByteView message) {
    auto answer = notify->read_answer(message, unix_seconds());
    if (answer)
      rcode = *answer;
    else
      refused = answer.error().text;
    return rcode.has_value();
  };
  Status done = co_await udp_exchange(std::move(exchange));
  if (rcode) co_return *rcode;
  if (!refused.empty()) co_return fail(Errc::kIo, "{}; got: {}", done.error().text, refused);
  co_return pass(done);
}

}  // namespace pando::manager
