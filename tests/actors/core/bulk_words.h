// Words of a bulk link as a test reads them.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>

#include "actors/core/remote/bulk_frame.h"

namespace troupe::actors {

inline std::deque<BulkFrame> FramesOf(const std::string& bytes) {
  std::deque<BulkFrame> frames;
  for (std::size_t at = 0; at < bytes.size(); at += kBulkFrameBytes) {
    const StatusOr<BulkFrame> frame = ReadBulkFrame(std::string_view(bytes).substr(at));
    EXPECT_TRUE(frame.ok());
    frames.push_back(*frame);
  }
  return frames;
}

}  // namespace troupe::actors
