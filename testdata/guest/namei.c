// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names: the functions on the way from a system call that makes or removes a
 * folder's entry (vfs_mkdir, vfs_rmdir, vfs_symlink, vfs_unlink), with the
 * signatures of 6.1. There is one folder for all names, whole paths, so that
 * the folder's inode is NULL.
 */

#define S_IFDIR 0040000
#define S_IFLNK 0120000

struct user_namespace;

static noinline struct dentry *filename_create(int dfd, struct filename *name)
{
	struct dentry *d;

	if (d_lookup(name->name))
		return ERR_PTR(-EEXIST);
	d = d_alloc(name->name);
	return d ? d : ERR_PTR(-ENOSPC);
}

/* The name is free again; what is open of it stays, until it is closed. */
noinline void d_delete(struct dentry *d)
{
	d->d_parent = NULL;
	WRITE_ONCE(d->d_flags, 0);
	d_reuse(d);
}

noinline int vfs_mkdir(struct user_namespace *mnt_userns, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	dentry->d_inode->i_mode = S_IFDIR | (mode & 01777);
	return 0;
}

noinline int vfs_rmdir(struct user_namespace *mnt_userns, struct inode *dir, struct dentry *dentry)
{
	if ((dentry->d_inode->i_mode & S_IFDIR) != S_IFDIR)
		return -ENOTDIR;
	d_delete(dentry);
	return 0;
}

noinline int vfs_symlink(struct user_namespace *mnt_userns, struct inode *dir, struct dentry *dentry, const char *oldname)
{
	struct inode *inode = dentry->d_inode;

	inode->i_mode = S_IFLNK | 0777;
	inode->i_size = strlen(oldname);
	memcpy(inode->i_data, oldname, inode->i_size);
	return 0;
}

noinline int vfs_unlink(struct user_namespace *mnt_userns, struct inode *dir, struct dentry *dentry,
			struct inode **delegated_inode)
{
	d_delete(dentry);
	return 0;
}

noinline int do_mkdirat(int dfd, struct filename *name, umode_t mode)
{
	struct dentry *dentry = filename_create(dfd, name);
	int err = IS_ERR(dentry) ? PTR_ERR(dentry) : vfs_mkdir(NULL, NULL, dentry, mode);

	putname(name);
	return err;
}

noinline int do_rmdir(int dfd, struct filename *name)
{
	struct dentry *dentry = d_lookup(name->name);
	int err = dentry ? vfs_rmdir(NULL, NULL, dentry) : -ENOENT;

	putname(name);
	return err;
}

noinline int do_symlinkat(struct filename *from, int newdfd, struct filename *to)
{
	struct dentry *dentry = filename_create(newdfd, to);
	int err = IS_ERR(dentry) ? PTR_ERR(dentry) : vfs_symlink(NULL, NULL, dentry, from->name);

	putname(to);
	putname(from);
	return err;
}

noinline int do_unlinkat(int dfd, struct filename *name)
{
	struct dentry *dentry = d_lookup(name->name);
	int err = dentry ? vfs_unlink(NULL, NULL, dentry, NULL) : -ENOENT;

	putname(name);
	return err;
}

noinline long sys_mkdir(const char *pathname, umode_t mode)
{
	struct filename buf, *name = getname(pathname, &buf);

	return IS_ERR(name) ? PTR_ERR(name) : do_mkdirat(AT_FDCWD, name, mode);
}

noinline long sys_rmdir(const char *pathname)
{
	struct filename buf, *name = getname(pathname, &buf);

	return IS_ERR(name) ? PTR_ERR(name) : do_rmdir(AT_FDCWD, name);
}

noinline long sys_symlink(const char *oldname, const char *newname)
{
	struct filename bufs[2], *from = getname(oldname, &bufs[0]), *to = getname(newname, &bufs[1]);

	if (IS_ERR(from))
		return PTR_ERR(from);
	return IS_ERR(to) ? PTR_ERR(to) : do_symlinkat(from, AT_FDCWD, to);
}

noinline long sys_unlink(const char *pathname)
{
	struct filename buf, *name = getname(pathname, &buf);

	return IS_ERR(name) ? PTR_ERR(name) : do_unlinkat(AT_FDCWD, name);
}

/* What makes and removes a folder of the tracing tree; the kernel's tests probe the first. */
noinline struct dentry *tracefs_create_dir(const char *name, struct dentry *parent)
{
	struct dentry *d = d_lookup(name);

	if (!d)
		d = d_alloc(name);
	if (d)
		d->d_parent = parent;
	return d;
}

noinline void tracefs_remove(struct dentry *dentry)
{
	if (dentry)
		d_delete(dentry);
}
