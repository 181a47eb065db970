"""Operations of `MLClient.jobs` on jobs, and their results."""
