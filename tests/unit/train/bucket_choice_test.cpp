#include "gallop/train/bucket_choice.h"

#include <mutex>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/model/mlp.h"
#include "gallop/parallel/ddp.h"
#include "unit/data/image_fields.h"
#include "unit/parallel/ranks.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

TEST(BucketChoice, IsDescribedWithWhatWasMeasured) {
  MeasuredChoice choice{
      .chosen = 1,
      .candidates = {{.name = "25 MiB", .seconds = 0.01412}, {.name = "4 MiB", .seconds = 0.01226}},
      .rounds = 2};
  EXPECT_EQ(describe_bucket(choice), "4 MiB (measured 25 MiB 14.1 ms, 4 MiB 12.3 ms)");
}

// A model with about this many bytes of gradients in three layers.
std::unique_ptr<model::Model> mlp_of_bytes(int64_t bytes) {
  const auto width = static_cast<int64_t>(std::sqrt(static_cast<double>(bytes) / 4 / 2));
  return make_mlp({.hidden = {width, width, width}}, kImages, 1);
}

MeasuredChoice choose_together(parallel::Collectives& collectives, Trainee& trainee,
                               bool compiled) {
  data::Batch batch;
  const int64_t rows = 7;
  const int64_t own = rows * (collectives.rank() + 1) / collectives.size() -
                      rows * collectives.rank() / collectives.size();
  const data::Fields fields = data::image_fields({3, 8, 8});
  const auto [input, target] = batch_of({}, own);
  batch.fields = &fields;
  batch.tensors = {input, target};
  batch.whole_size = rows;
  StepConfig step;
  if (compiled) step.compile = compile::CompileConfig();
  return choose_bucket({.model = *trainee.model,
                        .optimizer = *trainee.optimizer,
                        .batch = batch,
                        .step = step,
                        .make_strategy =
                            [&](const std::string& size) {
                              return parallel::make_ddp(
                                  {.bucket = size}, collectives,
                                  {trainee.model->parameters(), trainee.model->buffers()});
                            },
                        .uses = 1},
                       collectives);
}

TEST(BucketChoice, AllAgreeAndNothingHasHappened) {
  const Case tested{"",           [] { return mlp_of_bytes(6 << 20); }, "adamw", {}, false, true,
                    "[{ema: {}}]"};
  for (const bool compiled : {false, true}) {
    std::mutex mutex;
    std::vector<std::string> evidence;
    parallel::run_ranks(2, [&](parallel::Collectives& collectives) {
      Trainee trainee(tested, std::nullopt);
      NamedTensors before;
      for (const auto& [name, tensor] : trainee.everything()) {
        before.push_back({name, tensor.detach().clone()});
      }
      const MeasuredChoice choice = choose_together(collectives, trainee, compiled);
      const auto& sizes = choice.candidates;
      // One bucket of 25 MiB; two and several buckets; 100 MiB is one again.
      ASSERT_EQ(sizes.size(), 3);
      EXPECT_EQ(sizes[0].name, "25 MiB");
      EXPECT_EQ(sizes[1].name, "1 MiB");
      EXPECT_EQ(sizes[2].name, "4 MiB");
      for (const auto& size : sizes) EXPECT_GT(size.seconds, 0);
      const NamedTensors after = trainee.everything();
      for (size_t i = 0; i < after.size(); ++i) {
        EXPECT_TRUE(at::equal(after[i].tensor, before[i].tensor)) << after[i].name;
      }
      const std::lock_guard lock(mutex);
      evidence.push_back(choice.evidence());
    });
    ASSERT_EQ(evidence.size(), 2);
    EXPECT_EQ(evidence[0], evidence[1]);
  }
}

TEST(BucketChoice, OfSmallGradientsThereIsNothingToChoose) {
  parallel::run_ranks(2, [&](parallel::Collectives& collectives) {
    const Case tested{"", [] { return mlp_of_bytes(64 << 10); }, "sgd"};
    Trainee trainee(tested, std::nullopt);
    const MeasuredChoice choice = choose_together(collectives, trainee, true);
    ASSERT_EQ(choice.candidates.size(), 1);
    EXPECT_EQ(choice.candidates[0].name, "25 MiB");
    EXPECT_EQ(choice.rounds, 0) << "nothing was timed";
    EXPECT_NE(describe_bucket(choice).find("not measured"), std::string::npos);
  });
}

}  // namespace
}  // namespace gallop::train
