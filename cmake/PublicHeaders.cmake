# GALLOP_INSTALLED_HEADERS: the public headers and those that they include, relative to src/. Everything else is private.
set(public_headers
  gallop.h
  app/cli.h app/fit.h app/plugin.h app/registries.h
  base/error.h base/file.h base/philox.h
  config/visitor.h
  data/augment.h data/batch_transform.h data/data_config.h data/data_module.h data/image_module.h data/readers.h data/samples.h
  model/initializer.h model/layer/layer.h model/model.h model/module_model.h
  optim/optimizer.h optim/wrapper.h
  parallel/process_group.h parallel/strategy.h
  schedule/schedule.h
  train/losses/loss.h train/losses/shapes.h train/metrics/class_counts.h train/metrics/metric.h train/metrics/residuals.h train/tasks/task.h
  tune/optimize.h tune/pruner.h tune/sampler.h tune/store.h tune/tuner.h)

list(TRANSFORM public_headers PREPEND gallop/ OUTPUT_VARIABLE headers_to_read)
set(GALLOP_INSTALLED_HEADERS "")
while(headers_to_read)
  list(POP_FRONT headers_to_read header)
  # Generated ones are installed by name.
  if(header IN_LIST GALLOP_INSTALLED_HEADERS OR NOT EXISTS ${PROJECT_SOURCE_DIR}/src/${header})
    continue()
  endif()
  list(APPEND GALLOP_INSTALLED_HEADERS ${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/${header} includes REGEX "^#include \"gallop/")
  list(TRANSFORM includes REPLACE "^#include \"([^\"]+)\".*" "\\1")
  list(APPEND headers_to_read ${includes})
endwhile()
