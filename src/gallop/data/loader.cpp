#include "gallop/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/thread_pool.h"
#include "gallop/base/trace.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/batch_transform.h"
#include "gallop/data/packing.h"
#include "gallop/data/sample_order.h"

namespace gallop::data {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWaitSlice(20);
// Samples that a thread claims at once: few enough that all threads share the first batch, many
// enough that claiming is cheap.
constexpr int64_t kMaxChunk = 32;
constexpr int64_t kChunksPerThread = 4;

/// Rows [begin, end) of a slot, claimed by one thread.
struct Chunk {
  BatchSlot* slot = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

// Stores the lengths of the ragged fields of a row that has been filled.
void keep_lengths(BatchSlot& slot, int64_t row, const std::vector<int64_t>& lengths) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    BatchRows& field = slot.fields[i];
    if (!field.is_ragged()) continue;
    if (lengths[i] < 0 || lengths[i] > field.tensor.size(1)) {
      throw InternalError(fmt::format("a sample has {} elements in a field of at most {}",
                                      lengths[i], field.tensor.size(1)));
    }
    field.lengths[static_cast<size_t>(row)] = lengths[i];
    field.pad(row);
  }
}

/// The result of filling a chunk.
struct Outcome {
  int64_t broken = 0;
  std::exception_ptr error;
  int64_t error_row = 0;
};

}  // namespace

struct Loader::Impl {
  Impl(const Samples& all_samples, const LoaderConfig& loader_config, const LoaderState& start);
  ~Impl();

  std::optional<Batch> next(const StopRequest* stop);
  bool ready();
  void seek(const LoaderState& start);

  void check(const LoaderState& start) const;
  int64_t batch_at(int64_t epoch, int64_t position) const;
  void begin_at(const LoaderState& start);
  void open(BatchSlot& slot);
  BatchRange next_range();
  std::optional<Chunk> claim();
  Outcome fill(const Chunk& chunk, Scratch& scratch, const StopRequest* stop) const;
  void finish(const Chunk& chunk, const Outcome& outcome);
  void work(Scratch& scratch);
  bool fill_here(const StopRequest* stop);
  void wake_threads();
  bool wait_for_threads(std::unique_lock<std::mutex>& lock, const StopRequest* stop);
  Batch deliver(BatchSlot& slot);

  bool shares_transforms() const { return config.transforms != nullptr && config.parts > 1; }
  BatchKey key() const { return {.seed = static_cast<uint64_t>(state.seed)}; }
  bool next_is_ready() { return opened > delivered && slot_of(delivered).ready(); }
  bool at_end() const { return config.one_epoch && next_epoch != first_epoch; }
  BatchSlot& slot_of(int64_t ticket) {
    return slots[static_cast<size_t>(ticket % static_cast<int64_t>(slots.size()))];
  }

  const Samples& samples;
  const LoaderConfig config;
  const int64_t size;    ///< Samples of an epoch that are delivered.
  const Fields& fields;  ///< Of the batches.
  int64_t chunk_rows = 1;
  std::vector<BatchSlot> slots;
  std::vector<std::unique_ptr<Scratch>> scratches;
  LoaderState state;  ///< After the last batch that next() returned.
  double waited_seconds = 0;

  // The mutex guards everything below and each slot's counters. Batches are numbered in stream
  // order: [released, delivered) are held by the caller, [delivered, opened) by the threads.
  std::mutex mutex;
  std::condition_variable work_wanted, work_done;
  int64_t released = 0;
  int64_t delivered = 0;
  int64_t opened = 0;
  int64_t busy = 0;                           ///< Threads that are filling a chunk.
  int64_t next_epoch = 0, next_position = 0;  ///< Start of the next batch to open.
  std::vector<BatchSizeChange> changes;
  int64_t first_epoch = 0;
  std::atomic<bool> abandon{false};  ///< Tells threads to drop their work, for a seek or shutdown.
  bool closing = false;
  // Declared last, so that its threads are joined before anything they use is destroyed.
  std::unique_ptr<ThreadPool> pool;
};

namespace {

int64_t delivered_samples(const Samples& samples, const LoaderConfig& config) {
  if (config.batch < 1 || config.threads < 0 || config.prefetch < 1 || config.part < 0 ||
      config.part >= config.parts) {
    throw InternalError(
        fmt::format("a loader with batch {}, {} threads, prefetch {}, part {} of {}", config.batch,
                    config.threads, config.prefetch, config.part, config.parts));
  }
  const int64_t size = samples.size();
  if (size < 1) throw DataError("the data set has no samples");
  if (!config.drop_last || config.plan) return size;
  if (size < config.batch) {
    throw UsageError(fmt::format(
        "a batch of {} is larger than the data set of {} samples, and incomplete batches are left "
        "out; make the batch smaller",
        config.batch, size));
  }
  return size - size % config.batch;
}

}  // namespace

Loader::Impl::Impl(const Samples& all_samples, const LoaderConfig& loader_config,
                   const LoaderState& start)
    : samples(all_samples),
      config(loader_config),
      size(delivered_samples(all_samples, loader_config)),
      fields(loader_config.packs ? packed_fields(all_samples.fields()) : all_samples.fields()),
      changes(loader_config.changes) {
  check(start);
  begin_at(start);
  const int64_t most = config.plan ? config.plan->most_samples() : std::min(config.batch, size);
  const int64_t own = (most + config.parts - 1) / config.parts;
  const int64_t rows = own + (shares_transforms() ? config.transforms->most_partners(own) : 0);
  chunk_rows =
      std::clamp<int64_t>(rows / (kChunksPerThread * std::max(1, config.threads)), 1, kMaxChunk);
  // The caller holds two batches; without threads nothing is prepared ahead.
  slots.resize(static_cast<size_t>(config.threads == 0 ? 2 : config.prefetch + 2));
  for (auto& slot : slots) {
    for (const Field& field : samples.fields()) {
      slot.fields.push_back(make_rows(field, rows, config.pinned));
    }
    if (config.packs) {
      slot.packed = std::make_shared<PackedRows>(samples.fields(), rows, config.pinned);
    }
    slot.broken.resize(static_cast<size_t>(rows));
  }
  for (int i = 0; i < std::max(1, config.threads); ++i) {
    scratches.push_back(samples.make_scratch());
  }
  if (config.threads == 0) return;
  pool = std::make_unique<ThreadPool>(config.threads, "loader");
  for (auto& scratch : scratches) {
    pool->submit([this, &scratch] { work(*scratch); });
  }
}

Loader::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex);
    closing = true;
    abandon = true;
  }
  work_wanted.notify_all();
}

void Loader::Impl::check(const LoaderState& start) const {
  if (start.epoch < 0 || start.position < 0 || start.position > samples.size()) {
    throw UsageError(fmt::format(
        "the data position (epoch {}, sample {}) does not fit a data set of {} samples; it belongs "
        "to other data",
        start.epoch, start.position, samples.size()));
  }
}

void Loader::Impl::begin_at(const LoaderState& start) {
  state = start;
  if (state.position >= size) {
    ++state.epoch;
    state.position = 0;
  }
  next_epoch = state.epoch;
  next_position = state.position;
  first_epoch = state.epoch;
  released = delivered = opened = 0;
}

int64_t Loader::Impl::batch_at(int64_t epoch, int64_t position) const {
  int64_t batch = config.batch;
  for (const BatchSizeChange& one : changes) {
    const bool has_begun = std::pair(one.epoch, one.position) <= std::pair(epoch, position);
    if (has_begun) batch = std::min(config.batch, one.batch);
  }
  return batch;
}

BatchRange Loader::Impl::next_range() {
  const int64_t whole = config.plan
                            ? config.plan->end(next_epoch, next_position) - next_position
                            : std::min(batch_at(next_epoch, next_position), size - next_position);
  const int64_t begin = whole * config.part / config.parts;
  BatchRange range{.epoch = next_epoch,
                   .position = next_position + begin,
                   .rows = whole * (config.part + 1) / config.parts - begin,
                   .whole_position = next_position,
                   .whole_rows = whole};
  if (shares_transforms()) {
    range.partners = config.transforms->partners(key(), {next_epoch, next_position, whole}, begin,
                                                 begin + range.rows);
  }
  next_position = range.whole_end();
  if (next_position >= size) {
    ++next_epoch;
    next_position = 0;
  }
  return range;
}

// Prepares a slot for the next batch.
void Loader::Impl::open(BatchSlot& slot) {
  slot.open(next_range());
  const BatchRange& range = slot.range;
  auto sizes = samples.input_sizes(index_at(
      samples, config.shuffle, order_of(samples, state.seed, range.epoch), range.whole_position));
  if (!sizes.empty()) slot.fields[samples.fields().input_index()].resize(std::move(sizes));
}

// Claims the next rows to fill, in stream order; nullopt if every buffer is full. Requires the
// mutex.
std::optional<Chunk> Loader::Impl::claim() {
  if (opened == 0 || slot_of(opened - 1).taken == slot_of(opened - 1).range.filled_rows()) {
    if (opened == released + static_cast<int64_t>(slots.size()) || at_end()) return std::nullopt;
    open(slot_of(opened));
    ++opened;
  }
  BatchSlot& slot = slot_of(opened - 1);
  const int64_t begin = slot.taken;
  slot.taken = std::min(begin + chunk_rows, slot.range.filled_rows());
  return Chunk{&slot, begin, slot.taken};
}

Outcome Loader::Impl::fill(const Chunk& chunk, Scratch& scratch, const StopRequest* stop) const {
  const TraceSpan span(SpanKind::kData, "load samples");
  Outcome outcome;
  BatchSlot& slot = *chunk.slot;
  const auto epoch = slot.range.epoch;
  const Permutation order = order_of(samples, state.seed, epoch);
  std::vector<void*> rows(slot.fields.size());
  std::vector<int64_t> lengths(slot.fields.size());
  for (int64_t row = chunk.begin; row < chunk.end; ++row) {
    if (abandon.load(std::memory_order_relaxed) || (stop != nullptr && stop->requested())) break;
    const int64_t position = slot.range.position_of(row);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = slot.fields[i].row(row);
      if (slot.fields[i].is_ragged()) lengths[i] = samples.fields()[i].shape.sizes.front();
    }
    const int64_t index = index_at(samples, config.shuffle, order, position);
    try {
      if (const auto& sizes = slot.fields[fields.input_index()].sizes;
          !sizes.empty() && samples.input_sizes(index) != sizes) {
        throw InternalError("a batch with inputs of different sizes");
      }
      if (samples.fill(index, epoch, SampleRow(rows, lengths), scratch)) {
        keep_lengths(slot, row, lengths);
        continue;
      }
    } catch (...) {
      outcome.error = std::current_exception();
      outcome.error_row = row;
      break;
    }
    slot.broken[static_cast<size_t>(row)] = 1;
    ++outcome.broken;
  }
  return outcome;
}

// Requires the mutex.
void Loader::Impl::finish(const Chunk& chunk, const Outcome& outcome) {
  BatchSlot& slot = *chunk.slot;
  if (outcome.error && (!slot.error || outcome.error_row < slot.error_row)) {
    slot.error = outcome.error;
    slot.error_row = outcome.error_row;
  }
  slot.done += chunk.end - chunk.begin;
  slot.broken_rows += outcome.broken;
}

void Loader::Impl::work(Scratch& scratch) {
  std::unique_lock lock(mutex);
  for (;;) {
    std::optional<Chunk> chunk;
    work_wanted.wait(lock, [&] { return closing || (!abandon && (chunk = claim())); });
    if (closing) return;
    ++busy;
    lock.unlock();
    const Outcome outcome = fill(*chunk, scratch, nullptr);
    lock.lock();
    --busy;
    finish(*chunk, outcome);
    if (chunk->slot->ready() || abandon) work_done.notify_one();
  }
}

// Fills the next batch in the caller's thread. Returns false if a stop was requested, leaving the
// state unchanged.
bool Loader::Impl::fill_here(const StopRequest* stop) {
  const int64_t epoch = next_epoch, position = next_position;
  BatchSlot& slot = slot_of(opened);
  open(slot);
  const Chunk chunk{&slot, 0, slot.range.filled_rows()};
  const Outcome outcome = fill(chunk, *scratches.front(), stop);
  if (stop != nullptr && stop->requested()) {
    next_epoch = epoch;
    next_position = position;
    return false;
  }
  finish(chunk, outcome);
  ++opened;
  return true;
}

// Waking a thread takes longer than filling a batch of small samples, and takes a core from the
// step. So all threads are woken only if a batch is late, and one if half of the prepared batches
// have been used.
void Loader::Impl::wake_threads() {
  if (!next_is_ready()) {
    work_wanted.notify_all();
  } else if (2 * (opened - delivered) <= config.prefetch) {
    work_wanted.notify_one();
  }
}

// Waits until the next batch is ready; returns false if a stop was requested.
bool Loader::Impl::wait_for_threads(std::unique_lock<std::mutex>& lock, const StopRequest* stop) {
  if (next_is_ready()) return true;
  const double begin = monotonic_seconds();
  bool stopped = false;
  while (!stopped && !work_done.wait_for(lock, kWaitSlice, [this] { return next_is_ready(); })) {
    stopped = stop != nullptr && stop->requested();
  }
  waited_seconds += monotonic_seconds() - begin;
  return !stopped;
}

std::optional<Batch> Loader::Impl::next(const StopRequest* stop) {
  if (stop != nullptr && stop->requested()) return std::nullopt;
  std::unique_lock lock(mutex);
  if (opened == delivered && at_end()) return std::nullopt;
  released = std::max(released, delivered - 1);
  if (pool) {
    wake_threads();
    if (!wait_for_threads(lock, stop)) return std::nullopt;
  } else {
    const double begin = monotonic_seconds();
    const bool filled = fill_here(stop);
    waited_seconds += monotonic_seconds() - begin;
    if (!filled) return std::nullopt;
  }
  BatchSlot& slot = slot_of(delivered++);
  lock.unlock();
  if (slot.error) std::rethrow_exception(slot.error);
  slot.remove_broken();
  return deliver(slot);
}

bool Loader::Impl::ready() {
  const std::lock_guard lock(mutex);
  return next_is_ready();
}

Batch Loader::Impl::deliver(BatchSlot& slot) {
  const BatchRange& range = slot.range;
  Batch batch;
  batch.fields = &fields;
  if (slot.packed) {
    batch.tensors = slot.packed->pack(slot.fields, slot.kept());
    batch.packed_samples = slot.kept();
  } else {
    for (BatchRows& field : slot.fields) batch.tensors.push_back(field.first(slot.kept()));
  }
  batch.skipped = slot.broken_own();
  batch.epoch = range.epoch;
  batch.position = range.position;
  batch.whole_position = range.whole_position;
  batch.whole_size = range.whole_rows;
  batch.last_of_epoch = range.whole_end() >= size;
  if (config.transforms) batch.partner_rows = slot.kept() - (range.rows - batch.skipped);
  if (config.transforms || slot.broken_rows > 0) batch.row_positions = slot.kept_positions();
  state.skipped += batch.skipped;
  state.epoch = batch.last_of_epoch ? range.epoch + 1 : range.epoch;
  state.position = batch.last_of_epoch ? 0 : range.whole_end();
  return batch;
}

void Loader::Impl::seek(const LoaderState& start) {
  check(start);
  std::unique_lock lock(mutex);
  abandon = true;
  work_done.wait(lock, [this] { return busy == 0; });
  abandon = false;
  begin_at(start);
  lock.unlock();
  work_wanted.notify_all();
}

NamedTensors Batch::by_role() const {
  NamedTensors named = {{"input", input()}, {"target", target()}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i == fields->input_index() || i == fields->target_index()) continue;
    named.push_back({(*fields)[i].name, tensors[i]});
  }
  return named;
}

void Batch::to(c10::Device device, bool non_blocking) {
  for (at::Tensor& tensor : tensors) tensor = tensor.to(device, non_blocking);
}

Loader::Loader(const Samples& samples, const LoaderConfig& config, const LoaderState& start)
    : impl_(std::make_unique<Impl>(samples, config, start)) {}
Loader::~Loader() = default;

std::optional<Batch> Loader::next(const StopRequest* stop) {
  const TraceSpan span(SpanKind::kDataWait, "next batch");
  return impl_->next(stop);
}
bool Loader::ready() const { return impl_->ready(); }
LoaderState Loader::state() const { return impl_->state; }
void Loader::seek(const LoaderState& state) { impl_->seek(state); }
void Loader::set_batch_sizes(std::vector<BatchSizeChange> changes) {
  const std::lock_guard lock(impl_->mutex);
  impl_->changes = std::move(changes);
}
int64_t Loader::batches_per_epoch() const {
  if (impl_->config.plan) return impl_->config.plan->batches();
  return (impl_->size + impl_->config.batch - 1) / impl_->config.batch;
}
double Loader::wait_seconds() const { return impl_->waited_seconds; }

}  // namespace gallop::data
