#include "gallop/parallel/ddp.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/parallel/data_parallel.h"
#include "gallop/parallel/rank_order_sums.h"

namespace gallop::parallel {

namespace {

std::string wrong_bucket(const std::string& text) {
  const std::string wrong = text == kAutoBucket ? "" : config::wrong_bytes(text);
  return wrong.empty() ? wrong : wrong + ", or auto";
}

// The default size if none was measured.
int64_t bytes_of(const std::string& bucket) {
  return *parse_bytes(bucket == kAutoBucket ? kDefaultBucket : bucket);
}

// Empty for a single process, which has nothing to share.
std::vector<at::Tensor> summed(const ModelTensors& model, const Collectives& collectives) {
  std::vector<at::Tensor> parameters;
  if (collectives.size() == 1) return parameters;
  for (const size_t i : in_gradient_order(model)) {
    if (model.parameters[i].tensor.requires_grad())
      parameters.push_back(model.parameters[i].tensor);
  }
  return parameters;
}

}  // namespace

void visit_bucket_bytes(config::Visitor& visitor, std::string& bucket) {
  visitor.field({.name = "bucket",
                 .help = "gradient bucket size of the all-reduce",
                 .check = config::wrong_bytes},
                bucket);
}

void visit(config::Visitor& visitor, DdpConfig& config) {
  visitor.field({.name = "bucket",
                 .help = "gradient bucket size of the all-reduce; auto: measured when a run of "
                         "several processes starts",
                 .check = wrong_bucket},
                config.bucket);
  visit_batch_norm(visitor, config.batch_norm);
  visitor.field(
      {.name = "sum_order",
       .help = "any: gradients are summed in the order of the fastest all-reduce; rank: in "
               "the order of ranks, as zero-1 does",
       .choices = {"any", "rank"}},
      config.sum_order);
  visitor.field({.name = "compress",
                 .help = "gradient compression of the all-reduce: none, bf16, fp16, or powersgd "
                         "(low-rank factors with error feedback)",
                 .choices = {"none", "bf16", "fp16", "powersgd"}},
                config.compression.format);
  visitor.field(
      {.name = "compress_rank", .help = "rank of PowerSGD's factors", .min = 1, .max = 64},
      config.compression.rank);
}

std::unique_ptr<Strategy> make_ddp(const DdpConfig& config, Collectives& collectives,
                                   const ModelTensors& model) {
  const bool in_rank_order = config.sum_order == "rank";
  if (in_rank_order && config.compression.format != "none") {
    throw UsageError(
        fmt::format("parallel.sum_order is rank, which parallel.compress={} does not support; use "
                    "parallel.sum_order=any, or parallel.compress=none",
                    config.compression.format));
  }
  const std::vector<at::Tensor> parameters = summed(model, collectives);
  const auto make_sums = [&](GradientBuckets& buckets) {
    if (in_rank_order) {
      const auto sizes = equal_parts(buckets, collectives.size());
      return make_rank_order_sums(buckets, sizes, own_parts(buckets, sizes, collectives.rank()),
                                  /*gathers=*/true);
    }
    return make_bucket_sums(config.compression, buckets, collectives.size());
  };
  return std::make_unique<DataParallel>(
      collectives, model, config.batch_norm == "synchronized", parameters,
      GradientBuckets(parameters, bytes_of(config.bucket)), make_sums);
}

}  // namespace gallop::parallel
