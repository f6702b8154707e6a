#include "gallop/parallel/pipeline_drawing.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace gallop::parallel {
namespace {

std::string text_of(const char* name, int ranks, int micro_batches, size_t columns) {
  const auto schedule = make_pipeline_schedule(name, ranks, micro_batches);
  const auto costs = PipelineCosts::of_equal_stages(schedule, 1, 1, 1);
  return timeline_text(schedule, simulate(schedule, costs), columns);
}

TEST(PipelineDrawing, HasALinePerRank) {
  EXPECT_EQ(text_of("1f1b", 2, 3, 80),
            "rank\n"
            "   0  F0 F1       B0--- F2 B1---    B2---\n"
            "   1     F0 B0--- F1 B1--- F2 B2---\n");
  EXPECT_EQ(text_of("zero-bubble", 2, 2, 80),
            "rank\n"
            "   0  F0 F1    I0 W0 I1 W1\n"
            "   1     F0 I0 F1 I1 W0 W1\n");
}

TEST(PipelineDrawing, FitsIntoTheColumns) {
  for (const auto& kind : pipeline_schedules()) {
    for (const size_t columns : {20, 60, 120}) {
      std::istringstream lines(text_of(kind.name, 4, 16, columns));
      std::string line;
      while (std::getline(lines, line)) EXPECT_LE(line.size(), columns) << kind.name;
    }
  }
}

TEST(PipelineDrawing, DrawsEachPassOnce) {
  const auto schedule = make_pipeline_schedule("dualpipev", 2, 4);
  const auto costs = PipelineCosts::of_equal_stages(schedule, 1, 1, 1);
  const std::string svg = timeline_svg(schedule, simulate(schedule, costs), "a & b", "ms");
  for (const auto& actions : schedule.actions) {
    for (const PipelineAction& action : actions) {
      const std::string title = "<title>" + parallel::text_of(action) + ": ";
      const size_t place = svg.find(title);
      ASSERT_NE(place, std::string::npos) << title;
      EXPECT_EQ(svg.find(title, place + 1), std::string::npos) << title;
    }
  }
  EXPECT_NE(svg.find("<title>a &amp; b</title>"), std::string::npos);
  EXPECT_NE(svg.find("13 ms in all"), std::string::npos);
}

}  // namespace
}  // namespace gallop::parallel
