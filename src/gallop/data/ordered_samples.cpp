#include "gallop/data/ordered_samples.h"

#include <utility>

#include "gallop/data/tensor_samples.h"

namespace gallop::data {

namespace {

/// Samples in the order of their positions.
class OrderedSamples final : public Samples {
 public:
  OrderedSamples(std::shared_ptr<const Samples> samples, std::shared_ptr<const EpochOrder> order)
      : Samples(samples->fields()), samples_(std::move(samples)), order_(std::move(order)) {}

  int64_t size() const override { return samples_->size(); }
  bool every_target_counts() const override { return samples_->every_target_counts(); }
  bool has_own_order() const override { return true; }
  std::unique_ptr<Scratch> make_scratch() const override { return samples_->make_scratch(); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    return samples_->fill(order_->index(epoch, index), epoch, row, scratch);
  }

  const Samples& source() const override { return samples_->source(); }
  int64_t source_index(int64_t epoch, int64_t position) const override {
    return samples_->source_index(epoch, order_->index(epoch, position));
  }

 private:
  std::shared_ptr<const Samples> samples_;
  std::shared_ptr<const EpochOrder> order_;
};

}  // namespace

int64_t EpochOrder::index(int64_t epoch, int64_t position) const {
  const auto order = orders_.get(epoch, [this](int64_t number) { return make(number); });
  return (*order)[static_cast<size_t>(position)];
}

void put_in_order(DataModule& module, std::shared_ptr<const EpochOrder> order) {
  const std::shared_ptr<const Samples> train = std::move(module.train);
  if (module.unaugmented) {
    module.unaugmented = std::make_unique<OrderedSamples>(std::move(module.unaugmented), order);
  } else {
    module.unaugmented = std::make_unique<SharedSamples>(train);
  }
  module.train = std::make_unique<OrderedSamples>(train, std::move(order));
}

}  // namespace gallop::data
