#include "gallop/track/prometheus.h"

#include <cmath>

#include <gtest/gtest.h>

namespace gallop::track {
namespace {

// Escapes and keywords as in "Exposition formats" of Prometheus's documentation.
TEST(Prometheus, ExportsTheStateOfRuns) {
  RunSummary run;
  run.name = "a \"b\"\\\nc";
  run.state = RunState::kTraining;
  run.created = 1700000000.5;
  run.steps = 12;
  run.metrics["train.loss"].last = 0.25;
  run.metrics["nan"].last = NAN;
  run.metrics["inf"].last = -INFINITY;
  const std::string text = prometheus_text({run});
  const std::string name = "run=\"a \\\"b\\\"\\\\\\nc\"";
  for (const std::string& line :
       {"gallop_run_state{" + name + ",state=\"training\"} 1\n",
        "gallop_run_created_timestamp_seconds{" + name + "} 1700000000.5\n",
        "gallop_run_steps{" + name + "} 12\n",
        "gallop_run_metric{" + name + ",metric=\"train.loss\"} 0.25\n",
        "gallop_run_metric{" + name + ",metric=\"nan\"} NaN\n",
        "gallop_run_metric{" + name + ",metric=\"inf\"} -Inf\n"}) {
    EXPECT_NE(text.find("\n" + line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find("\n\n"), std::string::npos);
}

TEST(Prometheus, IsEmptyWithoutRuns) {
  EXPECT_EQ(prometheus_text({}).find('{'), std::string::npos);
}

}  // namespace
}  // namespace gallop::track
