// Method: requests as bytes, whole, one byte at a time, and broken in each way a client can.
#include "head/http/request_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::head {
namespace {

using Step = RequestReader::Step;

std::string With(const std::string& line, const std::string& headers = "") {
  return line + "\r\nHost: a\r\n" + headers + "\r\n";
}

unsigned StatusOf(const std::string& bytes) {
  RequestReader reader;
  return reader.Feed(bytes) == Step::kBad ? reader.refusal().status : 0;
}

TEST(RequestReader, ReadsARequestHoweverItsBytesCome) {
  const std::string bytes = With("GET /a%20b?limit=5&name=x+y%26 HTTP/1.1",
                                 "authorization: bearer rt1.x\r\nCache-Control: no-cache\r\n"
                                 "Last-Event-ID: 7\r\nAccept: text/plain\r\n");
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    RequestReader reader;
    Step step = reader.Feed(bytes.substr(0, cut));
    if (cut < bytes.size()) {
      EXPECT_EQ(step, Step::kMore);
      step = reader.Feed(bytes.substr(cut));
    }
    ASSERT_EQ(step, Step::kRequest);
    const HttpRequest& request = reader.request();
    EXPECT_EQ(request.method, "GET");
    EXPECT_EQ(request.path, "/a b");
    EXPECT_EQ(request.query,
              (std::map<std::string, std::string>{{"limit", "5"}, {"name", "x y&"}}));
    EXPECT_EQ(request.bearer.Reveal(), "rt1.x");
    EXPECT_EQ(request.last_event_id, "7");
    EXPECT_TRUE(request.no_cache && request.keep_alive);
    EXPECT_FALSE(reader.begun());
  }
}

TEST(RequestReader, ReadsOneRequestAfterTheOther) {
  RequestReader reader;
  ASSERT_EQ(reader.Feed(With("GET /1 HTTP/1.1") + With("GET /2 HTTP/1.1", "Connection: close\r\n") +
                        "GE"),
            Step::kRequest);
  EXPECT_EQ(reader.request().path, "/1");
  ASSERT_EQ(reader.Feed(""), Step::kRequest);
  EXPECT_EQ(reader.request().path, "/2");
  EXPECT_FALSE(reader.request().keep_alive);
  EXPECT_EQ(reader.Feed(""), Step::kMore);
  EXPECT_TRUE(reader.begun());
}

TEST(RequestReader, ReadsABodyBehindTheHeadAndTheNextRequestBehindIt) {
  const std::string bytes =
      With("POST /1 HTTP/1.1", "Content-Length: 4\r\nIdempotency-Key: k\r\n") + "body" +
      With("GET /2 HTTP/1.1");
  for (std::size_t cut = bytes.find("body"); cut <= bytes.size(); ++cut) {
    RequestReader reader;
    ASSERT_EQ(reader.Feed(bytes.substr(0, cut)), Step::kRequest);
    EXPECT_EQ(reader.request().body_bytes, 4u);
    EXPECT_EQ(reader.request().idempotency_key, "k");
    const bool whole = reader.FeedBody({});
    EXPECT_EQ(whole, cut >= bytes.find("body") + 4);
    if (!whole) {
      ASSERT_TRUE(reader.FeedBody(bytes.substr(cut)));
    }
    EXPECT_EQ(reader.request().body, "body");
    ASSERT_EQ(reader.Feed(whole ? bytes.substr(cut) : ""), Step::kRequest);
    EXPECT_EQ(reader.request().path, "/2");
  }
}

TEST(RequestReader, RefusesWhatIsTooLong) {
  EXPECT_EQ(StatusOf(With("GET / HTTP/1.1", "X: " + std::string(kHttpHeadBytesMax, 'x') + "\r\n")),
            431u);
  EXPECT_EQ(StatusOf(std::string(kHttpHeadBytesMax + 1, 'x')), 431u);
  EXPECT_EQ(StatusOf(With("GET /" + std::string(5000, 'x') + " HTTP/1.1")), 400u);
  EXPECT_EQ(StatusOf(With("POST / HTTP/1.1", "Content-Length: 1048577\r\n")), 413u);
  EXPECT_EQ(StatusOf(With("POST / HTTP/1.1", "Content-Length: 1048576\r\n")), 0u);
  EXPECT_EQ(StatusOf(With("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n")), 413u);
  EXPECT_EQ(StatusOf(With("POST / HTTP/1.1", "Content-Length: 0\r\n")), 0u);
}

TEST(RequestReader, RefusesWhatHasTwoMeanings) {
  for (const char* line : {"GET http://a/ HTTP/1.1", "GET * HTTP/1.1", "GET /%0 HTTP/1.1",
                           "GET /%zz HTTP/1.1", "GET /%00 HTTP/1.1", "GET /?a=%0a HTTP/1.1",
                           "GET /?a=1&a=2 HTTP/1.1", "GET / HTTP/2.0", "GET /"}) {
    EXPECT_EQ(StatusOf(With(line)), 400u) << line;
  }
  for (const char* headers :
       {"Authorization: Basic eA==\r\n", "Authorization: Bearer \r\n", "Authorization: Bearer\r\n",
        "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", "Content-Length: x\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "no colon\r\n", "X : y\r\n"}) {
    EXPECT_EQ(StatusOf(With("GET / HTTP/1.1", headers)), 400u) << headers;
  }
}

}  // namespace
}  // namespace troupe::head
