#include "http/serve/http_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <thread>

#include "base/fd.h"

namespace pando::http {
namespace http_server_test {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A server on a port of loopback, and clients that write octets.
class Http : public ::testing::Test {
 protected:
  void serve(const ServerLimits& limits, Handler handler = nullptr) {
    if (!handler)
      handler = [](const Request& request) {
        return text_response(200, request.method + " " + request.path + " [" + request.query +
                                      "] " + request.body);
      };
    auto opened = HttpServer::open({any_port()}, {}, limits, {handler, may_send_much, is_known});
    ASSERT_TRUE(opened) << opened.error().text;
    server_ = std::move(*opened);
    at_ = server_->addresses().at(0);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Http() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  static Endpoint any_port() { return {IpAddress::from_text("127.0.0.1").value(), 0}; }

  [[nodiscard]] Fd connect() const {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage address{};
    const socklen_t length = at_.to_sockaddr(address);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    const timeval limit{20, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
  }
  static bool send(const Fd& fd, std::string_view text) {
    return ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  /// All octets until the server closes, or until `enough` have come.
  static std::string receive(const Fd& fd, std::size_t enough = SIZE_MAX) {
    std::string text;
    char part[4096];
    while (text.size() < enough) {
      const ssize_t got = ::recv(fd.get(), part, sizeof part, 0);
      if (got <= 0) break;
      text.append(part, static_cast<std::size_t>(got));
    }
    return text;
  }
  [[nodiscard]] std::string ask(std::string_view text) const {
    const Fd fd = connect();
    send(fd, text);
    return receive(fd);
  }

  std::function<bool(const Request&)> may_send_much;
  std::function<bool(const Request&)> is_known;
  std::unique_ptr<HttpServer> server_;
  Endpoint at_;
  std::thread thread_;
};

TEST_F(Http, HandsThePartsOfARequestOver) {
  serve({});
  const std::string answer =
      ask("POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
          "Content-Length: 4\r\n\r\nbody");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nPOST /a/b [c=d] body\n"));
}

TEST_F(Http, KeepsAConnectionForMoreRequests) {
  serve({});
  const Fd fd = connect();
  send(fd, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  send(fd, "HEAD /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answers = receive(fd);
  EXPECT_THAT(answers, HasSubstr("GET /1 [] \n"));
  EXPECT_THAT(answers, HasSubstr("GET /2 [] \n"));
  EXPECT_THAT(answers, EndsWith("\r\n\r\n")) << "HEAD: the fields of GET, and no content";
  EXPECT_THAT(answers, HasSubstr("Content-Length: 11\r\n"));
}

TEST_F(Http, RefusesMalformedAndLargeRequests) {
  ServerLimits limits;
  limits.header_bytes = 1024;
  limits.body_bytes = 100;
  serve(limits);
  const std::pair<std::string, const char*> cases[] = {
      {"nonsense\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /a b HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400 "},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nabc", "HTTP/1.1 501 "},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
       "HTTP/1.1 501 "},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
      {std::string("\0\xFF\x16\x03\x01", 5) + "\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /" + std::string(2000, 'a') + " HTTP/1.1\r\n\r\n", "HTTP/1.1 431 "},
      {"GET / HTTP/1.1\r\nA: " + std::string(2000, 'a') + "\r\n\r\n", "HTTP/1.1 431 "},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n", "HTTP/1.1 413 "},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
       "HTTP/1.1 4"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFF\r\n" +
           std::string(255, 'a') + "\r\n0\r\n\r\n",
       "HTTP/1.1 413 "},
  };
  for (const auto& [text, expected] : cases) {
    const Fd fd = connect();
    send(fd, text);
    ::shutdown(fd.get(), SHUT_WR);
    EXPECT_THAT(receive(fd), StartsWith(expected)) << text.substr(0, 80);
  }
  EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), HasSubstr(" 200 OK"));
}

/// The server asks before it reads, and for the header alone.
TEST_F(Http, TakesLargeBodiesOfSomeClientsOnly) {
  ServerLimits limits;
  limits.body_bytes = 100;
  limits.large_body_bytes = 10'000;
  limits.large_bodies = 1;
  may_send_much = [](const Request& header) {
    EXPECT_EQ(header.body, "");
    return header.api_key == "large";
  };
  serve(limits, [](const Request& request) {
    return text_response(200, fmt::format("{} octets", request.body.size()));
  });
  const auto post = [](std::string_view key, std::size_t octets) {
    return fmt::format("POST / HTTP/1.0\r\nX-API-Key: {}\r\nContent-Length: {}\r\n\r\n", key,
                       octets);
  };
  EXPECT_THAT(ask(post("small", 100) + std::string(100, 'a')), EndsWith("100 octets\n"));
  EXPECT_THAT(ask(post("small", 101)), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask(post("large", 10'001)), StartsWith("HTTP/1.1 413 "));
  const Fd first = connect();
  send(first, post("large", 10'000) + "a");
  std::string second;
  while (!second.starts_with("HTTP/1.1 503 ")) second = ask(post("large", 101) + std::string(101, 'a'));
  send(first, std::string(9'999, 'a'));
  EXPECT_THAT(receive(first), EndsWith("10000 octets\n"));
  while (second.starts_with("HTTP/1.1 503 ")) second = ask(post("large", 101) + std::string(101, 'a'));
  EXPECT_THAT(second, EndsWith("101 octets\n")) << "the place is free again";
}

TEST_F(Http, TellsAClientThatWaitsToGoOn) {
  serve({});
  const Fd fd = connect();
  send(fd, "PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n"
           "Connection: close\r\n\r\n");
  EXPECT_EQ(receive(fd, 10).substr(0, 25), "HTTP/1.1 100 Continue\r\n\r\n");
  send(fd, "ok");
  EXPECT_THAT(receive(fd), EndsWith("PUT / [] ok\n"));
}

/// RFC 9110 §8.6.
TEST_F(Http, ResponsesWithoutContentHaveNoLength) {
  serve({}, [](const Request&) {
    Response response;
    response.status = 204;
    return response;
  });
  const std::string answer = ask("PATCH / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr(" 204 No Content\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-")));
}

/// The manager may be slow, and metrics tell why.
TEST_F(Http, AChangeThatWaitsHoldsNoReader) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  serve({}, [released](const Request& request) {
    if (request.method != "GET") released.wait();
    return text_response(200, request.method);
  });
  std::vector<Fd> changes;
  for (int i = 0; i < 40; ++i) {
    changes.push_back(connect());
    send(changes.back(), "PATCH / HTTP/1.0\r\n\r\n");
  }
  EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), EndsWith("GET\n"));
  release.set_value();
  std::size_t done = 0, refused = 0;
  for (const Fd& fd : changes) {
    const std::string answer = receive(fd);
    done += answer.ends_with("PATCH\n") ? 1 : 0;
    refused += answer.find(" 503 ") != answer.npos ? 1 : 0;
  }
  EXPECT_EQ(done + refused, 40U);
  EXPECT_GE(done, ServerLimits().waiting);
}

/// A client that sends an octet now and then is no more patient than one that sends nothing.
TEST_F(Http, EndsSlowClientsInABoundedTime) {
  ServerLimits limits;
  limits.request_time = milliseconds(300);
  serve(limits);
  const auto begun = std::chrono::steady_clock::now();
  const Fd silent = connect();
  const Fd slow = connect();
  bool open = true;
  while (open && std::chrono::steady_clock::now() - begun < std::chrono::seconds(20)) {
    open = send(slow, "G");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_FALSE(open);
  EXPECT_EQ(receive(silent), "");
}

TEST_F(Http, EndsClientsThatDoNotComeBack) {
  ServerLimits limits;
  limits.idle_time = milliseconds(100);
  serve(limits);
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("GET / [] \n"));
}

TEST_F(Http, ANewClientTakesThePlaceOfTheOneThatWaitedLongest) {
  ServerLimits limits;
  limits.connections = 4;
  serve(limits);
  std::vector<Fd> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect());
  EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), HasSubstr(" 200 OK"));
  EXPECT_EQ(receive(idle.front()), "") << "closed long before its time";
}

TEST_F(Http, RefusesMoreThanItsRate) {
  ServerLimits limits;
  limits.requests_per_second = 1;
  limits.burst = 2;
  serve(limits);
  std::string answers;
  for (int i = 0; i < 10; ++i) answers += ask("GET / HTTP/1.0\r\n\r\n").substr(9, 4);
  EXPECT_THAT(answers, StartsWith("200 200 429 "));
}

/// Requests without a key, or with a wrong one, are many; those of known clients are answered.
TEST_F(Http, StrangersTakeNothingFromKnownClients) {
  ServerLimits limits;
  limits.requests_per_second = 1;
  limits.burst = 2;
  is_known = [](const Request& request) { return request.api_key == "known"; };
  serve(limits);
  std::string strangers;
  for (int i = 0; i < 10; ++i) strangers += ask("GET / HTTP/1.0\r\n\r\n").substr(9, 4);
  EXPECT_THAT(strangers, StartsWith("200 200 429 "));
  EXPECT_THAT(ask("GET / HTTP/1.0\r\nX-API-Key: known\r\n\r\n"), HasSubstr(" 200 OK"));
}

/// A request that cannot be read is answered as itself, not as the HEAD before it.
TEST_F(Http, ARefusalBehindHeadHasItsContent) {
  serve({});
  EXPECT_THAT(ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n"),
              EndsWith("\r\n\r\nmalformed request\n"));
}

/// RFC 9112 §3.2.2: the authority of the target counts, and not the Host field.
TEST_F(Http, TakesAWholeUrlAsTarget) {
  serve({}, [](const Request& request) {
    return text_response(200, request.host + " " + request.path + " [" + request.query + "]");
  });
  const std::pair<const char*, const char*> cases[] = {
      {"http://a.test:80/b?c", "a.test:80 /b [c]\n"},
      {"HTTPS://a.test", "a.test / []\n"},
      {"http://a.test?c", "a.test / [c]\n"},
      {"/http://a.test/b", "other /http://a.test/b []\n"},
  };
  for (const auto& [target, expected] : cases)
    EXPECT_THAT(ask(fmt::format("GET {} HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n",
                                target)),
                EndsWith(expected))
        << target;
}

/// Clients that ask for much and do not read it hold a bounded part of the memory.
TEST_F(Http, BoundsTheResponsesThatNobodyReads) {
  constexpr std::size_t kOctets = std::size_t{32} << 20;  // more than the sockets take
  ServerLimits limits;
  limits.unsent_bytes = 2 * kOctets + 100;  // a line has an end
  serve(limits, [](const Request& request) {
    return text_response(200, std::string(request.path == "/large" ? kOctets : 10, 'a'));
  });
  std::vector<Fd> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(connect());
    send(clients.back(), "GET /large HTTP/1.0\r\n\r\n");
    EXPECT_THAT(receive(clients.back(), 1), StartsWith("HTTP/1."));
  }
  EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), HasSubstr(" 200 OK")) << "small ones are answered";
  std::size_t whole = 0;
  for (const Fd& fd : clients) whole += receive(fd).size() > kOctets / 2 ? 1 : 0;
  EXPECT_EQ(whole, 2U);
  std::string answer;
  while (answer.size() < kOctets) answer = ask("GET /large HTTP/1.0\r\n\r\n");
}

/// A handler that hangs holds its threads, and the other requests are refused at once.
TEST_F(Http, RefusesWhatFindsNoThread) {
  ServerLimits limits;
  limits.threads = 1;
  limits.waiting = 2;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  serve(limits, [released](const Request&) {
    released.wait();
    return text_response(200, "late");
  });
  std::vector<Fd> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(connect());
    send(waiting.back(), "GET / HTTP/1.0\r\n\r\n");
    // The next one is sent when this one is in work: the server reads connections in order.
    const Fd next = connect();
  }
  std::string answer;
  for (int i = 0; i < 100 && answer.empty(); ++i) answer = ask("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr(" 503 "));
  release.set_value();
  for (const Fd& fd : waiting) EXPECT_THAT(receive(fd), EndsWith("late\n"));
}

/// A response of `parts` parts of `octets` octets each; it fails behind the last one, or ends.
Handler in_parts(int parts, std::size_t octets, bool fails = false) {
  return [=](const Request&) {
    Response response = text_response(200, "first");
    response.next_part = [=, made = 0](std::string& part) mutable -> Result<bool> {
      if (made == parts) return fail(Errc::kFull, "the list is gone");
      part.assign(octets, static_cast<char>('a' + made % 26));
      ++made;
      return fails || made < parts;
    };
    return response;
  };
}

TEST_F(Http, SendsAResponseInParts) {
  serve({}, in_parts(3, 4));
  const Fd fd = connect();
  send(fd, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  send(fd, "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answers = receive(fd);
  const std::string content =
      "\r\n\r\n6\r\nfirst\n\r\n4\r\naaaa\r\n4\r\nbbbb\r\n4\r\ncccc\r\n0\r\n\r\n";
  EXPECT_THAT(answers, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answers, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(answers, HasSubstr(content + "HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answers, EndsWith(content));
  EXPECT_EQ(answers.find("\r\n\r\nHTTP/1.1 ", answers.find(content) + content.size()) !=
                std::string::npos,
            true)
      << "HEAD has no content";
}

/// RFC 9112 §6.1: a client of HTTP/1.0 knows no chunks.
TEST_F(Http, PartsForAnOldClientEndWithTheConnection) {
  serve({}, in_parts(2, 3));
  const std::string answer = ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nfirst\naaabbb"));
}

TEST_F(Http, AResponseThatCannotGoOnIsCut) {
  serve({}, in_parts(2, 3, /*fails=*/true));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), Not(HasSubstr("\r\n0\r\n")));
  const Fd fd = connect();
  send(fd, "GET / HTTP/1.0\r\n\r\n");
  char part[4096];
  ssize_t got = 0;
  do got = ::recv(fd.get(), part, sizeof part, 0);
  while (got > 0);
  EXPECT_EQ(got, -1) << "the end of the connection would be the end of the content";
  EXPECT_EQ(errno, ECONNRESET);
}

/// A response of any length holds one part, and takes no place of others.
TEST_F(Http, AClientThatReadsNoPartsHoldsOneOnly) {
  ServerLimits limits;
  limits.threads = 1;
  limits.waiting = 1;
  limits.unsent_bytes = 1;
  const auto made = std::make_shared<std::atomic<int>>(0);
  serve(limits, [made](const Request& request) {
    Response response = text_response(200, "first");
    if (request.path == "/long")
      response.next_part = [made](std::string& part) -> Result<bool> {
        part.assign(std::size_t{1} << 20, 'a');
        ++*made;
        return true;
      };
    return response;
  });
  std::vector<Fd> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    send(clients.back(), "GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(receive(clients.back(), 1), StartsWith("HTTP/1."));
  }
  // Nobody reads: once the sockets are full, no more parts are made.
  int before = -1;
  for (int i = 0; i < 600 && before != *made; ++i) {
    before = *made;
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_EQ(before, *made);
  EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), HasSubstr(" 200 OK"));
}

TEST_F(Http, SaysWhyItCannotListen) {
  serve({});
  const auto second = HttpServer::open({at_}, {}, {}, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().text, HasSubstr("in use"));
  const auto no_files = HttpServer::open({}, TlsFiles{"/nowhere.pem", "/nowhere.key"}, {}, {});
  ASSERT_FALSE(no_files);
  EXPECT_THAT(no_files.error().text, StartsWith("/nowhere.pem: "));
}

}  // namespace http_server_test
}  // namespace pando::http
