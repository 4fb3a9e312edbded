# Tests of what a run writes down (src/train/logging_sources.cmake): a program of their own, without LibTorch.
lacuna_test(train_log
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/metrics_log_test.cpp ${CMAKE_CURRENT_LIST_DIR}/tensorboard_test.cpp
  LINKS lacuna_train_log lacuna_metrics)
target_compile_definitions(train_log_test PRIVATE READ_EVENTS="${CMAKE_CURRENT_LIST_DIR}/read_events.py")
